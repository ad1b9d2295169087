//! Every transport: a line with its name, its keys and its ends.

use super::go_back_n::GoBackN;
use super::keys::{Keys, Resolved, Setting, Traits};
use super::seam::{
    Answer, Arrival, Asks, Named, Numbers, Parameters, Post, Received, Receiver, Reply, Report, Sender, Start,
};
use super::{irn, ndp, rud, tcp};
use crate::congestion_control::CongestionControlParams;
use crate::congestion_control::seam::Departure;
use crate::flow_control::keys::Complaint;
use crate::names::{Tables, names, table_schema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;
use std::ops::Deref;
use xoff_kernel::time::Time;
use xoff_net::human;

/// From a line for each transport, with its keys and its ends: the enums of names, of parameters and of ends, the tables
/// of scenarios, and the dispatch of calls. `as` says that scenarios have a table of the transport's name. A transport
/// without ends is go-back-N.
macro_rules! registry {
    ($(
        $(#[$about:meta])*
        $transport:ident = $name:literal: $keys:ty $(as $table:ident)? $(=> $sender:ty, $receiver:ty)?;
    )*) => {
        names! {
        /// Transports.
        #[schemars(rename = "TransportKind")]
        pub enum Transport { $($(#[$about])* $transport = $name,)* }
        }

        impl Transport {
            /// What holds with any parameters.
            pub const fn traits(self) -> Traits {
                match self { $(Self::$transport => <$keys as Keys>::TRAITS,)* }
            }
        }

        /// The transport of a run, with its resolved parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TransportKind {
            $(#[doc = concat!("Under `", $name, "`.")] $transport(<$keys as Keys>::Params),)*
        }

        impl TransportKind {
            /// As scenarios write it.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$transport(_) => $name,)* }
            }

            /// What holds with any parameters.
            pub const fn traits(&self) -> Traits {
                match self { $(Self::$transport(_) => <$keys as Keys>::TRAITS,)* }
            }
        }

        impl Deref for TransportKind {
            type Target = dyn Parameters;

            fn deref(&self) -> &Self::Target {
                match self { $(Self::$transport(params) => params,)* }
            }
        }

        /// The tables of transports in a scenario. A transport without one has its defaults.
        #[derive(Clone, Debug, Default, Serialize)]
        pub struct TransportKeys {
            $($(#[doc = concat!("`[", $name, "]`.")] #[serde(rename = $name)] pub $table: Option<$keys>,)?)*
        }

        impl TransportKeys {
            /// The names of the tables.
            pub const NAMES: &[&str] = &[$($({ let _ = stringify!($table); $name },)?)*];

            /// The tables of a scenario.
            ///
            /// # Errors
            /// Those of `tables`.
            pub fn read<T: Tables>(tables: &T) -> Result<Self, T::Error> {
                Ok(Self { $($($table: tables.table($name)?,)?)* })
            }

            /// The parameters of `transport`.
            ///
            /// # Errors
            /// A value is out of range, or incompatible with another key.
            pub fn resolve(
                &self,
                transport: Transport,
                cx: &mut Setting<'_>,
            ) -> Result<Resolved<TransportKind>, Complaint> {
                match transport {
                    $(Transport::$transport => {
                        let keys = None::<$keys>$(.or(self.$table))?.unwrap_or_default();
                        let Resolved { params, rto, window, windows } = keys.resolve(cx)?;
                        Ok(Resolved { params: TransportKind::$transport(params), rto, window, windows })
                    })*
                }
            }
        }

        impl JsonSchema for TransportKeys {
            fn schema_name() -> Cow<'static, str> {
                "Transports".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut tables = serde_json::Map::new();
                $($({
                    let _ = stringify!($table);
                    tables.insert($name.into(), table_schema::<$keys>(generator));
                })?)*
                json_schema!({ "type": "object", "properties": tables })
            }
        }

        /// The senders of all flows beside their numbers, by flow; none under go-back-N.
        pub enum Senders {
            None,
            $($(
                #[doc = concat!("Under `", $name, "`.")]
                $transport(<$keys as Keys>::Params, Vec<$sender>),
            )?)*
        }

        impl Senders {
            /// Flows before they have sent anything.
            pub fn new(
                kind: &TransportKind,
                control: &CongestionControlParams,
                flows: impl Iterator<Item = Start>,
            ) -> Self {
                match *kind {
                    $($(TransportKind::$transport(params) => {
                        let senders = flows.map(|start| <$sender as Sender>::new(&params, control, start));
                        Self::$transport(params, senders.collect())
                    })?)*
                    _ => Self::None,
                }
            }

            /// Whether there are any.
            #[inline]
            pub fn used(&self) -> bool {
                !matches!(self, Self::None)
            }

            /// The bytes that they have reserved, without those that they refer to.
            pub fn memory(&self) -> u64 {
                match self {
                    Self::None => 0,
                    $($(Self::$transport(_, of) => (of.capacity() * size_of::<$sender>()) as u64,)?)*
                }
            }

            /// See [`Sender::on_sent`]. `None` under go-back-N.
            #[inline]
            pub fn on_sent(
                &mut self,
                numbers: &mut Numbers,
                now: Time,
                packet: Departure,
                post: Post<'_>,
            ) -> Option<Asks> {
                match self {
                    Self::None => None,
                    $($(Self::$transport(params, of) => {
                        let of = &mut of[packet.flow as usize];
                        Some(<$sender as Sender>::on_sent(of, params, numbers, now, packet, post))
                    })?)*
                }
            }

            /// See [`Sender::on_answer`]. `None` under go-back-N.
            #[inline]
            pub fn on_answer(
                &mut self,
                flow: u32,
                numbers: &mut Numbers,
                now: Time,
                answer: &Answer,
                post: Post<'_>,
            ) -> Option<bool> {
                match self {
                    Self::None => None,
                    $($(Self::$transport(params, of) => {
                        let of = &mut of[flow as usize];
                        Some(<$sender as Sender>::on_answer(of, params, numbers, now, answer, post))
                    })?)*
                }
            }

            /// See [`Sender::on_timer`]. `None` under go-back-N.
            pub fn on_timer(
                &mut self,
                flow: u32,
                numbers: &mut Numbers,
                now: Time,
                post: Post<'_>,
            ) -> Option<u32> {
                match self {
                    Self::None => None,
                    $($(Self::$transport(params, of) => {
                        Some(<$sender as Sender>::on_timer(&mut of[flow as usize], params, numbers, now, post))
                    })?)*
                }
            }

            /// See [`Sender::take_probe`].
            pub fn take_probe(&mut self, flow: u32) -> Option<u32> {
                match self {
                    Self::None => None,
                    $($(Self::$transport(_, of) => <$sender as Sender>::take_probe(&mut of[flow as usize]),)?)*
                }
            }

            /// See [`Sender::gave_up`].
            pub fn gave_up(&self, flow: u32) -> bool {
                match self {
                    Self::None => false,
                    $($(Self::$transport(_, of) => <$sender as Sender>::gave_up(&of[flow as usize]),)?)*
                }
            }

            /// See [`Sender::release`].
            pub fn release(&mut self, flow: u32) {
                match self {
                    Self::None => {}
                    $($(Self::$transport(_, of) => <$sender as Sender>::release(&mut of[flow as usize]),)?)*
                }
            }

            /// See [`Sender::set_window`].
            pub fn set_window(&mut self, flow: u32, numbers: &mut Numbers, window: u32) -> bool {
                match self {
                    Self::None => false,
                    $($(Self::$transport(_, of) => {
                        <$sender as Sender>::set_window(&mut of[flow as usize], numbers, window)
                    })?)*
                }
            }

            /// See [`Sender::report`].
            pub fn report(&self, flow: u32, numbers: &Numbers, answer: &Answer) -> Report {
                match self {
                    Self::None => Report::in_order(numbers, answer),
                    $($(Self::$transport(_, of) => {
                        <$sender as Sender>::report(&of[flow as usize], numbers, answer)
                    })?)*
                }
            }
        }

        /// The receivers of all flows, by flow; none under go-back-N.
        pub enum Receivers {
            None,
            $($(#[doc = concat!("Under `", $name, "`.")] $transport(Vec<$receiver>),)?)*
        }

        impl Receivers {
            /// Flows before any packet.
            pub fn new(kind: &TransportKind, flows: impl Iterator<Item = Start>) -> Self {
                match *kind {
                    $($(TransportKind::$transport(_) => {
                        Self::$transport(flows.map(|start| <$receiver as Receiver>::new(&start)).collect())
                    })?)*
                    _ => Self::None,
                }
            }

            /// Whether there are any.
            #[inline]
            pub fn used(&self) -> bool {
                !matches!(self, Self::None)
            }

            /// The bytes that they have reserved, without those that they refer to.
            pub fn memory(&self) -> u64 {
                match self {
                    Self::None => 0,
                    $($(Self::$transport(of) => (of.capacity() * size_of::<$receiver>()) as u64,)?)*
                }
            }

            /// See [`Receiver::on_data`]. `None` under go-back-N.
            #[inline]
            pub fn on_data(&mut self, flow: u32, ack_every: u32, packet: Arrival) -> Option<Received> {
                match self {
                    Self::None => None,
                    $($(Self::$transport(of) => {
                        Some(<$receiver as Receiver>::on_data(&mut of[flow as usize], ack_every, packet))
                    })?)*
                }
            }

            /// See [`Receiver::on_header`].
            pub fn on_header(&mut self, flow: u32, psn: u32, total: u32, last_hop: bool) -> (Reply, Named) {
                match self {
                    Self::None => unreachable!("go-back-N does not understand trimmed packets"),
                    $($(Self::$transport(of) => {
                        <$receiver as Receiver>::on_header(&mut of[flow as usize], psn, total, last_hop)
                    })?)*
                }
            }

            /// See [`Receiver::on_probe`].
            pub fn on_probe(&self, flow: u32) -> (u32, u64) {
                match self {
                    Self::None => unreachable!("go-back-N has no probes"),
                    $($(Self::$transport(of) => <$receiver as Receiver>::on_probe(&of[flow as usize]),)?)*
                }
            }

            /// See [`Receiver::joins`].
            pub fn joins(&mut self, flow: u32) -> bool {
                match self {
                    Self::None => false,
                    $($(Self::$transport(of) => <$receiver as Receiver>::joins(&mut of[flow as usize]),)?)*
                }
            }

            /// See [`Receiver::request`].
            pub fn request(&mut self, flow: u32) -> (Option<u32>, bool) {
                match self {
                    Self::None => (None, false),
                    $($(Self::$transport(of) => <$receiver as Receiver>::request(&mut of[flow as usize]),)?)*
                }
            }
        }
    };
}

registry! {
    /// One NACK per gap; the sender then retransmits every packet from the gap on.
    #[default]
    GoBackN = "go-back-n": GoBackN;
    /// Selective retransmission with a window of one BDP (IRN, SIGCOMM 2018).
    Irn = "irn": irn::IrnKeys as irn => irn::ends::Sender, irn::ends::Receiver;
    /// TCP NewReno (RFCs 5681, 6582 and 6298): a loss halves the window, which otherwise increases.
    /// It is its own congestion control.
    TcpNewReno = "tcp-newreno": tcp::TcpNewReno as tcp_newreno => tcp::ends::Sender, tcp::ends::Receiver;
    /// TCP NewReno that reduces its window by the share of marked packets (DCTCP,
    /// SIGCOMM 2010, and RFC 8257).
    TcpDctcp = "tcp-dctcp": tcp::TcpDctcp as tcp_dctcp => tcp::ends::Sender, tcp::ends::Receiver;
    /// The receiver requests each packet after the first window, and accepts packets in any order
    /// (NDP, SIGCOMM 2017). It is made for switches that trim packets.
    Ndp = "ndp": ndp::NdpKeys as ndp => ndp::ends::Sender, ndp::ends::Receiver;
    /// Accepts packets in any order; only trimmed packets and timeouts are retransmitted (RUD of Ultra
    /// Ethernet). The congestion control sets the window.
    Rud = "rud": rud::RudKeys as rud => rud::ends::Sender, rud::Receiver;
}

impl Transport {
    fn quoted(quote: char, have: impl Fn(Traits) -> bool) -> Vec<String> {
        let those = Self::ALL.iter().filter(|transport| have(transport.traits()));
        those.map(|transport| format!("{quote}{}{quote}", transport.name())).collect()
    }

    /// The names of those with some traits: `irn` or `rud`.
    pub fn any(have: impl Fn(Traits) -> bool) -> String {
        human::either(&Self::quoted('`', have))
    }

    /// The same as values of a key: "irn" or "rud".
    pub fn values(have: impl Fn(Traits) -> bool) -> String {
        human::either(&Self::quoted('"', have))
    }
}
