//! The network: byte streams for HTTP, and in simulation message channels for etcd.
//!
//! In the real build this is tokio's TCP. In simulation it is a network of our own on the runtime's
//! timers, because the faults that matter to locks need what the runtime's network lacks: a delay
//! per link, one-way cuts that hold messages instead of refusing connections, and a count of what
//! each fault changed. All traffic goes through here.
//!
//! Modelled: latency per message, order within a connection, cuts and delays per direction,
//! connection refusal, end of stream when a process dies (held back by a cut, as a FIN is), half
//! close. Not modelled: bandwidth, packet loss apart from delay, full buffers, connection resets
//! other than by death of the peer.

#[cfg(not(madsim))]
mod real;
#[cfg(madsim)]
pub(crate) mod sim;

#[cfg(not(madsim))]
pub use real::{TcpListener, TcpStream};
#[cfg(madsim)]
pub(crate) use sim::{MessageListener, MessageReceiver, MessageSender, MessageStream, NetSim};
#[cfg(madsim)]
pub use sim::{TcpListener, TcpStream};
