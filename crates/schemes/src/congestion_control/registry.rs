//! Every congestion control: a line with its name, its keys and its senders.

use super::keys::{Keys, Marking, Setting, Traits, default_target};
use super::seam::{Answer, Departure, Parameters, Sender};
use super::{dcqcn, dctcp, hpcc, nscc, nscc_rccc, powertcp, rccc, swift, timely};
use crate::flow_control::keys::Complaint;
use crate::names::{Tables, names, table_schema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;
use std::{fmt, ops::Deref};
use xoff_kernel::time::Time;
use xoff_net::human;

/// From a line for each congestion control, with its keys and its senders: the enums of names, of parameters and of
/// senders, the tables of scenarios, and the dispatch of calls. The first `as` names the table of the keys, if the
/// control has its own table. The second `as` names the part of the parameters that the senders read, if they do not read
/// all. A control without senders is a part of its transport.
macro_rules! registry {
    ($(
        $(#[$about:meta])*
        $control:ident = $name:literal: $keys:ty $(as $table:ident)? $(=> $sender:ty $(as $part:ident)?)?;
    )*) => {
        names! {
        /// Congestion controls.
        pub enum CongestionControl {
            /// None: line rate, or the `rate` of the flow.
            #[default]
            None = "none",
            $($(#[$about])* $control = $name,)*
        }
        }

        /// The congestion control of a run, with its resolved parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum CongestionControlParams {
            None,
            $(#[doc = concat!("Under `", $name, "`.")] $control(<$keys as Keys>::Params),)*
        }

        impl CongestionControlParams {
            /// As scenarios write it.
            pub fn name(&self) -> &'static str {
                match self {
                    Self::None => CongestionControl::None.name(),
                    $(Self::$control(_) => $name,)*
                }
            }
        }

        impl Deref for CongestionControlParams {
            type Target = dyn Parameters;

            fn deref(&self) -> &Self::Target {
                match self {
                    Self::None => &Without,
                    $(Self::$control(params) => params,)*
                }
            }
        }

        /// The tables of congestion controls in a scenario. A control without one has its defaults.
        #[derive(Clone, Debug, Default, Serialize)]
        pub struct CongestionControlKeys {
            $($(#[doc = concat!("`[", stringify!($table), "]`.")] pub $table: Option<$keys>,)?)*
        }

        $($(
            impl From<&CongestionControlKeys> for $keys {
                fn from(tables: &CongestionControlKeys) -> Self {
                    tables.$table.unwrap_or_default()
                }
            }
        )?)*

        impl CongestionControlKeys {
            /// The names of the tables.
            pub const NAMES: &[&str] = &[$($(stringify!($table),)?)*];

            /// The tables of a scenario.
            ///
            /// # Errors
            /// Those of `tables`.
            pub fn read<T: Tables>(tables: &T) -> Result<Self, T::Error> {
                Ok(Self { $($($table: tables.table(stringify!($table))?,)?)* })
            }

            /// The marking of `control`, where the scenario has none.
            pub fn marking(&self, control: CongestionControl) -> Option<Marking> {
                match control {
                    CongestionControl::None => None,
                    $(CongestionControl::$control => <$keys>::from(self).marking(),)*
                }
            }

            /// Bytes of telemetry in each data packet and each ACK under `control`.
            ///
            /// # Errors
            /// They are out of range.
            pub fn telemetry(&self, control: CongestionControl) -> Result<u32, Complaint> {
                match control {
                    CongestionControl::None => Ok(0),
                    $(CongestionControl::$control => <$keys>::from(self).telemetry(),)*
                }
            }

            /// The priority of congestion notifications under `control` and its key, if it is given and there are such
            /// packets.
            ///
            /// # Errors
            /// There is no such priority.
            pub fn notification_priority(
                &self,
                control: CongestionControl,
            ) -> Result<Option<(u8, &'static str)>, Complaint> {
                match control {
                    CongestionControl::None => Ok(None),
                    $(CongestionControl::$control => <$keys>::from(self).notification_priority(),)*
                }
            }

            /// The queueing delay that counts as none under `control`, in picoseconds.
            ///
            /// # Errors
            /// It is out of range.
            pub fn target_delay(
                &self,
                control: CongestionControl,
                cx: &Setting<'_>,
            ) -> Result<Time, Complaint> {
                match control {
                    CongestionControl::None => Ok(default_target(cx.trims, cx.flows.base_rtt()?)),
                    $(CongestionControl::$control => <$keys>::from(self).target_delay(cx),)*
                }
            }

            /// The parameters of `control`.
            ///
            /// # Errors
            /// A value is out of range.
            pub fn params(
                &self,
                control: CongestionControl,
                cx: &mut Setting<'_>,
            ) -> Result<CongestionControlParams, Complaint> {
                Ok(match control {
                    CongestionControl::None => CongestionControlParams::None,
                    $(CongestionControl::$control => {
                        CongestionControlParams::$control(<$keys>::from(self).params(cx)?)
                    })*
                })
            }
        }

        impl JsonSchema for CongestionControlKeys {
            fn schema_name() -> Cow<'static, str> {
                "CongestionControls".into()
            }

            /// The tables, each with the description of its keys.
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut tables = serde_json::Map::new();
                $($(tables.insert(stringify!($table).into(), table_schema::<$keys>(generator));)?)*
                json_schema!({ "type": "object", "properties": tables })
            }
        }

        impl CongestionControl {
            /// What holds with any parameters.
            pub const fn traits(self) -> Traits {
                match self {
                    Self::None => Traits::NONE,
                    $(Self::$control => <$keys as Keys>::TRAITS,)*
                }
            }
        }

        /// The senders of all flows, by flow; none where the congestion control has none.
        pub enum Controls {
            None,
            $($(
                #[doc = concat!("Under `", $name, "`.")]
                $control(<$keys as Keys>::Params, Vec<$sender>),
            )?)*
        }

        impl Controls {
            /// Every flow before it has sent anything, with its line rate in bits per second.
            pub fn new(params: &CongestionControlParams, lines: impl Iterator<Item = u64>) -> Self {
                match *params {
                    $($(CongestionControlParams::$control(p) => {
                        let of = lines.map(|line| <$sender as Sender>::new(&p$(.$part)?, line));
                        Self::$control(p, of.collect())
                    })?)*
                    _ => Self::None,
                }
            }

            /// A flow that has sent nothing begins at another line rate.
            pub fn restart(&mut self, flow: u32, line: u64) {
                match self {
                    Self::None => {}
                    $($(Self::$control(p, of) => {
                        of[flow as usize] = <$sender as Sender>::new(&p$(.$part)?, line);
                    })?)*
                }
            }

            /// The rate of a flow at `now`, in bits per second; `None` without senders.
            pub fn rate_at(&self, flow: u32, now: Time) -> Option<f64> {
                match self {
                    Self::None => None,
                    $($(Self::$control(p, of) => {
                        Some(<$sender as Sender>::rate_at(&of[flow as usize], &p$(.$part)?, now))
                    })?)*
                }
            }

            /// The window of a flow in packets, if its sender sets windows.
            pub fn window(&self, flow: u32) -> Option<u32> {
                match self {
                    Self::None => None,
                    $($(Self::$control(p, of) => {
                        <$sender as Sender>::window(&of[flow as usize], &p$(.$part)?)
                    })?)*
                }
            }

            /// The earliest time of the flow's next packet, if its window is below one packet.
            #[inline]
            pub fn not_before(&self, flow: u32) -> Option<Time> {
                match self {
                    Self::None => None,
                    $($(Self::$control(_, of) => {
                        <$sender as Sender>::not_before(&of[flow as usize])
                    })?)*
                }
            }

            /// A packet leaves: how long the next one of its flow must wait.
            #[inline]
            pub fn on_sent(&mut self, now: Time, packet: Departure) -> Option<Time> {
                match self {
                    Self::None => None,
                    $($(Self::$control(p, of) => {
                        <$sender as Sender>::on_sent(&mut of[packet.flow as usize], &p$(.$part)?, now, packet)
                    })?)*
                }
            }

            /// An ACK or NACK of a flow has reached its transport.
            #[cold]
            pub fn on_answer(&mut self, flow: u32, now: Time, answer: &Answer<'_>) {
                match self {
                    Self::None => {}
                    $($(Self::$control(p, of) => {
                        <$sender as Sender>::on_answer(&mut of[flow as usize], &p$(.$part)?, now, answer)
                    })?)*
                }
            }

            /// A retransmission timer of a flow has expired, from which so many losses are inferred.
            pub fn on_timeout(&mut self, flow: u32, losses: u32, now: Time) {
                match self {
                    Self::None => {}
                    $($(Self::$control(p, of) => {
                        <$sender as Sender>::on_timeout(&mut of[flow as usize], &p$(.$part)?, losses, now)
                    })?)*
                }
            }

            /// The transport of a flow has inferred a loss from something else than an ACK of data.
            pub fn on_loss(&mut self, flow: u32) {
                match self {
                    Self::None => {}
                    $($(Self::$control(p, of) => {
                        <$sender as Sender>::on_loss(&mut of[flow as usize], &p$(.$part)?)
                    })?)*
                }
            }

            /// A mark was reported to a flow's sender.
            pub fn on_cnp(&mut self, flow: u32, now: Time) {
                match self {
                    Self::None => {}
                    $($(Self::$control(p, of) => {
                        <$sender as Sender>::on_cnp(&mut of[flow as usize], &p$(.$part)?, now)
                    })?)*
                }
            }

            /// A flow is over.
            pub fn release(&mut self, flow: u32) {
                match self {
                    Self::None => {}
                    $($(Self::$control(_, of) => {
                        <$sender as Sender>::release(&mut of[flow as usize])
                    })?)*
                }
            }
        }
    };
}

registry! {
    /// DCQCN: switches mark, receivers notify, senders adapt a rate per flow
    /// (SIGCOMM 2015).
    Dcqcn = "dcqcn": dcqcn::DcqcnKeys as dcqcn => dcqcn::ReactionPoint;
    /// TIMELY: senders measure round-trip times and adapt a rate per flow to their
    /// gradient (SIGCOMM 2015, as published).
    Timely = "timely": timely::TimelyKeys as timely => timely::Sender;
    /// HPCC: packets carry the load of each link of their path, and senders adapt a rate and a
    /// window per flow (SIGCOMM 2019).
    Hpcc = "hpcc": hpcc::HpccKeys as hpcc => hpcc::Sender;
    /// DCTCP as a rate scheme of RoCE: switches mark, and senders adapt a rate and a
    /// window per flow to the share of marked packets in each round trip.
    Dctcp = "dctcp": dctcp::DctcpKeys as dctcp => dctcp::Sender;
    /// Swift: senders measure the delay of each ACK and adapt a window per flow, which may be below one
    /// packet (SIGCOMM 2020).
    Swift = "swift": swift::SwiftKeys as swift => swift::Sender;
    /// NSCC of Ultra Ethernet: senders adapt a window per flow to the mark and the delay of each ACK
    /// (specification 1.0.1).
    Nscc = "nscc": nscc::NsccKeys as nscc => nscc::Sender;
    /// PowerTCP: packets carry the load of each link of their path, and senders adapt a rate and a window per
    /// flow to the product of arriving bytes and waiting bytes (NSDI 2022).
    PowerTcp = "powertcp": powertcp::PowerTcpKeys as powertcp => powertcp::Sender;
    /// RCCC of Ultra Ethernet: the receiver grants credit to its senders at the rate of its link (specification
    /// 1.0.x, section 3.6.14). It needs the transport `rud`.
    Rccc = "rccc": rccc::RcccKeys as rccc;
    /// NSCC and RCCC of Ultra Ethernet together: a sender needs room in its window and credit of its receiver. It
    /// needs the transport `rud`.
    NsccRccc = "nscc+rccc": nscc_rccc::NsccRcccKeys => nscc::Sender as nscc;
}

/// No congestion control.
struct Without;

impl Parameters for Without {
    fn wants_answers(&self) -> bool {
        false
    }

    fn describe(&self, _: &mut String, _: &str, _: bool) -> fmt::Result {
        Ok(())
    }
}

impl CongestionControl {
    /// Those whose rules it applies, and whose tables it reads: itself, or its parts.
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::NsccRccc => &[Self::Nscc, Self::Rccc],
            _ => std::slice::from_ref(self),
        }
    }

    /// The names of those with some traits, as texts list them.
    pub fn listed(have: impl Fn(Traits) -> bool) -> String {
        let those = Self::ALL.iter().filter(|control| have(control.traits()));
        human::listed(&those.map(|control| format!("`{}`", control.name())).collect::<Vec<_>>())
    }
}

impl CongestionControlParams {
    /// Whether it has senders, which may set rates.
    pub fn has_senders(&self) -> bool {
        !matches!(Controls::new(self, std::iter::empty()), Controls::None)
    }

    /// The lane of congestion notifications, if they have one of their own.
    pub fn cnp_lane(&self) -> Option<u8> {
        self.cnps()?.lane
    }

    /// Those of NSCC, alone or with others.
    pub fn nscc(&self) -> Option<&nscc::NsccParams> {
        match self {
            Self::Nscc(params) => Some(params),
            Self::NsccRccc(both) => Some(&both.nscc),
            _ => None,
        }
    }

    /// Those of the credit of receivers, alone or with others.
    pub fn rccc(&self) -> Option<&rccc::RcccParams> {
        match self {
            Self::Rccc(params) => Some(params),
            Self::NsccRccc(both) => Some(&both.rccc),
            _ => None,
        }
    }
}
