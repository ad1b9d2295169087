//! PortFC (*Revisiting Flow Control in Node-Centric Datacenter Networks*, IEEE/ACM
//! Transactions on Networking, 2026).

pub mod ate;
