//! The enumerations of etcd's protocol: their numbers, their names, their default.
//!
//! In etcd-client they are made by prost, and so have these methods and conversions.

use super::{
    AlarmAction, AlarmType, CompareOp, EventType, PermissionType, SortOrder, SortTarget,
    WatchFilterType,
};

/// A number that is no value of the enumeration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown enumeration value {0}")]
pub struct UnknownEnumValue(pub i32);

macro_rules! numbers {
    ($enumeration:ident: $first:ident $(, $value:ident)*) => {
        impl $enumeration {
            /// Whether the number is one of a value.
            pub fn is_valid(value: i32) -> bool {
                Self::try_from(value).is_ok()
            }
        }

        impl From<$enumeration> for i32 {
            fn from(value: $enumeration) -> i32 {
                value as i32
            }
        }

        impl TryFrom<i32> for $enumeration {
            type Error = UnknownEnumValue;

            fn try_from(value: i32) -> Result<Self, UnknownEnumValue> {
                [$enumeration::$first $(, $enumeration::$value)*]
                    .into_iter()
                    .find(|known| *known as i32 == value)
                    .ok_or(UnknownEnumValue(value))
            }
        }
    };
}

macro_rules! names {
    ($enumeration:ident: $($value:ident = $name:literal),*) => {
        impl $enumeration {
            /// The name in etcd's protocol.
            pub fn as_str_name(&self) -> &'static str {
                match self {
                    $($enumeration::$value => $name,)*
                }
            }

            /// The value of a name in etcd's protocol.
            pub fn from_str_name(value: &str) -> Option<Self> {
                match value {
                    $($name => Some($enumeration::$value),)*
                    _ => None,
                }
            }
        }

        numbers!($enumeration: $($value),*);
    };
}

names!(SortOrder: None = "NONE", Ascend = "ASCEND", Descend = "DESCEND");
names!(SortTarget:
    Key = "KEY", Version = "VERSION", Create = "CREATE", Mod = "MOD", Value = "VALUE");
names!(CompareOp:
    Equal = "EQUAL", Greater = "GREATER", Less = "LESS", NotEqual = "NOT_EQUAL");
names!(EventType: Put = "PUT", Delete = "DELETE");
names!(PermissionType: Read = "READ", Write = "WRITE", Readwrite = "READWRITE");
names!(AlarmAction: Get = "GET", Activate = "ACTIVATE", Deactivate = "DEACTIVATE");
names!(AlarmType: None = "NONE", Nospace = "NOSPACE", Corrupt = "CORRUPT");
numbers!(WatchFilterType: NoPut, NoDelete);

macro_rules! defaults {
    ($($enumeration:ident::$value:ident),* $(,)?) => {
        $(impl Default for $enumeration {
            fn default() -> Self {
                $enumeration::$value
            }
        })*
    };
}

defaults!(
    CompareOp::Equal,
    EventType::Put,
    PermissionType::Read,
    AlarmAction::Get,
    AlarmType::None,
    WatchFilterType::NoPut,
);
