//! Enums with names for output and input, each declared once.

#[derive(Debug, thiserror::Error)]
#[error("unknown {what} `{text}` (valid: {})", names.join(", "))]
pub(crate) struct UnknownName {
    pub(crate) what: &'static str,
    pub(crate) text: String,
    pub(crate) names: Vec<&'static str>,
}

/// Declares an enum with named variants; `$same` compares a name with a text.
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub(crate) enum $Type:ident ($what:literal, $same:path) {
            $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        pub(crate) enum $Type {
            $($(#[$doc])* #[serde(rename = $name)] $variant $(= $number)?,)+
        }

        impl $Type {
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),+];

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::fmt::Display for $Type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $Type {
            type Err = crate::names::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let found = Self::ALL.iter().find(|one| $same(one.name(), text));
                found.copied().ok_or_else(|| crate::names::UnknownName {
                    what: $what,
                    text: text.to_owned(),
                    names: Self::ALL.iter().map(|one| one.name()).collect(),
                })
            }
        }
    };
}

pub(crate) use named;
