//! Every load balancing: a line with its name and its keys.

use super::keys::{Keys, Setting};
use super::seam::{Ack, Arrival, Offer, SenderRule, SwitchRule};
use super::{adaptive, drill, plb, reps, spray, ugal, valiant};
use crate::flow_control::keys::Complaint;
use crate::names::{Tables, names};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;
use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_outcome::report::{Facts, Records};

/// What a run does with the paths of its flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Switches choose a path for each data packet.
    Switches(PacketRule),
    /// Senders label their packets.
    Senders(SenderRules),
}

/// From a line for each rule of switches and of senders, with its keys: the enums of names, of parameters and of states,
/// the tables of scenarios, and the dispatch of calls. `as` names the table of the keys, if there is one.
macro_rules! registry {
    (
        switches { $($(#[$about:meta])* $switch:ident = $name:literal: $keys:ty $(as $table:ident)?;)* }
        senders { $($(#[$sender_about:meta])* $sender:ident = $sender_name:literal: $sender_keys:ty $(as $sender_table:ident)?;)* }
    ) => {
        names! {
        /// How flows spread over paths.
        pub enum LoadBalancing {
            /// The hash gives each flow one path.
            #[default]
            Ecmp = "ecmp",
            $($(#[$about])* $switch = $name,)*
            $($(#[$sender_about])* $sender = $sender_name,)*
        }
        }

        impl LoadBalancing {
            /// Whether devices choose for each packet.
            pub const fn by_packet(self) -> bool {
                matches!(self, $(Self::$switch)|*)
            }

            /// Whether senders label their packets.
            pub const fn by_senders(self) -> bool {
                matches!(self, $(Self::$sender)|*)
            }

            /// Whether senders label each packet by itself.
            pub const fn labels_packets(self) -> bool {
                match self {
                    $(Self::$sender => <<$sender_keys as Keys>::Rule as SenderRule>::EACH_PACKET,)*
                    _ => false,
                }
            }

            /// Whether ACKs return the number of marked packets to senders.
            pub const fn counts_marks(self) -> bool {
                self.by_senders() && !self.labels_packets()
            }

            /// Whether packets may take non-minimal paths.
            pub const fn is_non_minimal(self) -> bool {
                match self {
                    $(Self::$switch => <<$keys as Keys>::Rule as SwitchRule>::NON_MINIMAL,)*
                    _ => false,
                }
            }
        }

        /// A rule of switches, with its resolved parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum PacketRule {
            $(#[doc = concat!("`", $name, "`.")] $switch(<$keys as Keys>::Rule),)*
        }

        impl PacketRule {
            /// Whether packets may take non-minimal paths.
            pub const fn is_non_minimal(&self) -> bool {
                match self {
                    $(Self::$switch(_) => <<$keys as Keys>::Rule as SwitchRule>::NON_MINIMAL,)*
                }
            }

            /// Bytes that a device remembers of each set of equal ports.
            pub fn memory(&self) -> usize {
                match self {
                    $(Self::$switch(rule) => {
                        rule.places() * size_of::<<<$keys as Keys>::Rule as SwitchRule>::Place>()
                    })*
                }
            }

            /// The name of the devices' random streams.
            pub const fn stream(&self) -> &'static str {
                match self {
                    $(Self::$switch(_) => <<$keys as Keys>::Rule as SwitchRule>::STREAM,)*
                }
            }

            /// See [`SwitchRule::describe`].
            pub fn describe(&self) -> String {
                match self {
                    $(Self::$switch(rule) => rule.describe(),)*
                }
            }
        }

        /// A rule of switches, and what devices remember of each set of equal ports.
        pub enum Choosers {
            $(
                #[doc = concat!("`", $name, "`.")]
                $switch(<$keys as Keys>::Rule, Vec<<<$keys as Keys>::Rule as SwitchRule>::Place>),
            )*
        }

        impl Choosers {
            /// Devices with so many sets of equal ports in all, before any packet.
            pub fn new(rule: &PacketRule, sets: usize) -> Self {
                match *rule {
                    $(PacketRule::$switch(rule) => {
                        let empty = <<$keys as Keys>::Rule as SwitchRule>::EMPTY;
                        Self::$switch(rule, vec![empty; sets * rule.places()])
                    })*
                }
            }

            /// See [`SwitchRule::choose`].
            #[inline]
            pub fn choose(
                &mut self,
                set: usize,
                packet: Arrival,
                offer: Offer<'_>,
                draw: impl FnMut(u64) -> u64,
                load: impl Fn(usize) -> u64,
            ) -> usize {
                match self {
                    $(Self::$switch(rule, memory) => {
                        let places = rule.places();
                        rule.choose(&mut memory[set * places..][..places], packet, offer, draw, load)
                    })*
                }
            }
        }

        /// A rule of senders, with its resolved parameters.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum SenderRules {
            $(#[doc = concat!("`", $sender_name, "`.")] $sender(<$sender_keys as Keys>::Rule),)*
        }

        impl SenderRules {
            /// Labels of a flow, at least 2.
            pub fn labels(&self) -> u32 {
                match self {
                    $(Self::$sender(rule) => rule.labels(),)*
                }
            }

            /// The name of the flows' random streams.
            pub const fn stream(&self) -> &'static str {
                match self {
                    $(Self::$sender(_) => <<$sender_keys as Keys>::Rule as SenderRule>::STREAM,)*
                }
            }

            /// Whether each packet can have another label.
            pub const fn each_packet(&self) -> bool {
                match self {
                    $(Self::$sender(_) => <<$sender_keys as Keys>::Rule as SenderRule>::EACH_PACKET,)*
                }
            }

            /// See [`SenderRule::describe`].
            pub fn describe(&self) -> [String; 2] {
                match self {
                    $(Self::$sender(rule) => rule.describe(),)*
                }
            }
        }

        /// The senders of all flows under a rule, by flow; none where senders do not label packets.
        #[derive(Default)]
        pub enum Labellers {
            #[default]
            None,
            $(
                #[doc = concat!("`", $sender_name, "`.")]
                $sender(<$sender_keys as Keys>::Rule, Vec<<<$sender_keys as Keys>::Rule as SenderRule>::Sender>),
            )*
        }

        impl Labellers {
            /// So many flows, before any packet.
            pub fn new(rule: &SenderRules, flows: usize) -> Self {
                match *rule {
                    $(SenderRules::$sender(rule) => Self::$sender(rule, vec![Default::default(); flows]),)*
                }
            }

            /// See [`SenderRule::next`].
            #[inline]
            pub fn next(&mut self, flow: u32, draw: impl FnMut(u64) -> u64) -> u32 {
                match self {
                    Self::None => 0,
                    $(Self::$sender(rule, of) => rule.next(&mut of[flow as usize], draw),)*
                }
            }

            /// See [`SenderRule::on_ack`].
            pub fn on_ack(&mut self, flow: u32, ack: &Ack, draw: impl FnMut(u64) -> u64) -> Option<u32> {
                match self {
                    Self::None => None,
                    $(Self::$sender(rule, of) => rule.on_ack(&mut of[flow as usize], ack, draw),)*
                }
            }

            /// See [`SenderRule::on_timeout`].
            pub fn on_timeout(&mut self, flow: u32, now: Time, draw: impl FnMut(u64) -> u64) -> Option<u32> {
                match self {
                    Self::None => None,
                    $(Self::$sender(rule, of) => rule.on_timeout(&mut of[flow as usize], now, draw),)*
                }
            }

            /// See [`SenderRule::on_move`].
            pub fn on_move(&mut self, flow: u32) {
                match self {
                    Self::None => {}
                    $(Self::$sender(rule, of) => rule.on_move(&mut of[flow as usize]),)*
                }
            }

            /// See [`SenderRule::records`].
            pub fn records(&self, with_choice: u64) -> Records {
                match self {
                    Self::None => Records::default(),
                    $(Self::$sender(_, of) => <<$sender_keys as Keys>::Rule as SenderRule>::records(of, with_choice),)*
                }
            }
        }

        /// The facts that the rules report about a run.
        pub fn facts() -> Vec<&'static Facts> {
            vec![$(<<$sender_keys as Keys>::Rule as SenderRule>::FACTS,)*]
        }

        /// The tables of load balancing in `[routing]`. A rule without one has its defaults.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct LoadBalancingKeys {
            $($(#[doc = concat!("`[routing.", stringify!($table), "]`.")] pub $table: Option<$keys>,)?)*
            $($(#[doc = concat!("`[routing.", stringify!($sender_table), "]`.")] pub $sender_table: Option<$sender_keys>,)?)*
        }

        impl LoadBalancingKeys {
            /// The names of the tables.
            pub const NAMES: &[&str] = &[$($(stringify!($table),)?)* $($(stringify!($sender_table),)?)*];

            /// The tables of a scenario.
            ///
            /// # Errors
            /// Those of `tables`.
            pub fn read<T: Tables>(tables: &T) -> Result<Self, T::Error> {
                Ok(Self {
                    $($($table: tables.table(stringify!($table))?,)?)*
                    $($($sender_table: tables.table(stringify!($sender_table))?,)?)*
                })
            }

            /// Whether packets of a flow overtake each other under `kind` where paths differ.
            pub fn reorders(&self, kind: LoadBalancing) -> bool {
                match kind {
                    LoadBalancing::Ecmp => false,
                    $(LoadBalancing::$switch => None::<$keys>$(.or(self.$table))?.unwrap_or_default().reorders(),)*
                    $(LoadBalancing::$sender => {
                        None::<$sender_keys>$(.or(self.$sender_table))?.unwrap_or_default().reorders()
                    })*
                }
            }

            /// The rule of `kind`; `None` is ECMP.
            ///
            /// # Errors
            /// A value is out of range.
            pub fn rule(&self, kind: LoadBalancing, cx: &mut Setting<'_>) -> Result<Option<Rule>, Complaint> {
                Ok(Some(match kind {
                    LoadBalancing::Ecmp => return Ok(None),
                    $(LoadBalancing::$switch => {
                        let keys = None::<$keys>$(.or(self.$table))?.unwrap_or_default();
                        Rule::Switches(PacketRule::$switch(keys.rule(cx)?))
                    })*
                    $(LoadBalancing::$sender => {
                        let keys = None::<$sender_keys>$(.or(self.$sender_table))?.unwrap_or_default();
                        Rule::Senders(SenderRules::$sender(keys.rule(cx)?))
                    })*
                }))
            }
        }

        impl JsonSchema for LoadBalancingKeys {
            fn schema_name() -> Cow<'static, str> {
                "LoadBalancings".into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut tables = serde_json::Map::new();
                $($(tables.insert(stringify!($table).into(), described::<$keys>(generator, stringify!($table)));)?)*
                $($(
                    let table = described::<$sender_keys>(generator, stringify!($sender_table));
                    tables.insert(stringify!($sender_table).into(), table);
                )?)*
                json_schema!({ "type": "object", "properties": tables })
            }
        }
    };
}

/// The schema of a table that a scenario may leave out.
fn described<K: JsonSchema>(generator: &mut SchemaGenerator, name: &str) -> serde_json::Value {
    let mut table = generator.subschema_for::<Option<K>>();
    table.insert("description".into(), format!("The load balancing `{name}`.").into());
    table.insert("x-default".into(), "its own defaults".into());
    table.to_value()
}

registry! {
    switches {
        /// Each device sends each data packet to one of its equal next hops at random.
        Spray = "spray": spray::Spray;
        /// Each device sends each data packet to the least loaded of a few equal next hops: DRILL(d, m)
        /// (SIGCOMM 2017).
        Drill = "drill": drill::DrillKeys as drill;
        /// Each device sends each data packet, or each burst of a flow, to the least loaded of its equal next hops:
        /// adaptive routing and switching (ARS).
        Adaptive = "adaptive": adaptive::AdaptiveKeys as adaptive;
        /// The first switch sends each data packet over a random non-minimal path: Valiant's routing, in a dragonfly or
        /// torus.
        Valiant = "valiant": valiant::Valiant;
        /// The first switch sends each data packet over a minimal path or a random non-minimal one, by the lengths of
        /// paths and of its queues: UGAL-L (ISCA 2008), in a dragonfly or torus.
        Ugal = "ugal": ugal::UgalKeys as ugal;
    }
    senders {
        /// A sender gives its flow another path after marked packets or timeouts: PLB (SIGCOMM 2022).
        Plb = "plb": plb::PlbKeys as plb;
        /// A sender labels each packet, and uses labels again whose packets came unmarked: recycled entropy packet
        /// spraying (REPS, arXiv 2407.21625).
        Reps = "reps": reps::RepsKeys as reps;
    }
}

impl LoadBalancing {
    pub fn is_ecmp(&self) -> bool {
        *self == Self::Ecmp
    }

    /// The names of those that `are`, as helps offer them.
    pub fn any(are: impl Fn(Self) -> bool) -> String {
        let those = Self::ALL.iter().filter(|kind| are(**kind));
        human::either(&those.map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>())
    }
}
