//! What etcd-client offers and the simulation does not have: it can be called, and says so.
//!
//! Every call gives the gRPC code Unimplemented and a text that begins with `not simulated`. The
//! types of the answers have etcd-client's accessors, so that client code compiles; no such value
//! ever comes.

/// Calls that answer `not simulated`, for each of the clients that offer them.
macro_rules! not_simulated_calls {
    ([$($client:ident),*] $calls:tt) => {
        $(super::absent::not_simulated_calls!(@of $client $calls);)*
    };
    (@of $client:ident {
        $($name:ident($($arg:ident: $kind:ty),*) -> $response:ty = $what:literal;)*
    }) => {
        impl $client {
            $(
                /// Not simulated.
                ///
                /// # Errors
                /// Always: `GRpcStatus` with code Unimplemented.
                pub async fn $name(&mut self, $($arg: $kind),*) -> super::error::Result<$response> {
                    $(let _ = $arg;)*
                    Err(super::error::not_simulated($what))
                }
            )*
        }
    };
}
pub(super) use not_simulated_calls;

/// Types of answers that never come, with a header and whatever else follows in braces.
macro_rules! absent_responses {
    ($($(#[$attribute:meta])* $name:ident { $($field:ident: $kind:ty),* })*) => {
        $(
            $(#[$attribute])*
            pub struct $name {
                header: Option<super::ResponseHeader>,
                $($field: $kind,)*
            }

            impl $name {
                /// The header.
                pub fn header(&self) -> Option<&super::ResponseHeader> {
                    self.header.as_ref()
                }

                /// Takes the header out.
                pub fn take_header(&mut self) -> Option<super::ResponseHeader> {
                    self.header.take()
                }
            }
        )*
    };
}
pub(super) use absent_responses;
