//! Traces as the W3C has them: of which a job is part, and the span of each attempt at it.

use std::{fmt, str::FromStr};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::job::Details;

/// The variable, and in lower case the detail of a job, that says of which span something is part.
pub(crate) const PARENT: &str = "TRACEPARENT";

/// The same for what those who trace tell each other.
pub(crate) const STATE: &str = "TRACESTATE";

/// All that tell of a trace; those of a conductor are about itself, and not about its jobs.
pub(crate) const VARIABLES: [&str; 3] = [PARENT, STATE, "BAGGAGE"];

/// What of it is kept at most.
const LONGEST_STATE: usize = 512;

/// A span, wherever it is, and its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanContext {
    trace: u128,
    span: u64,
    flags: u8,
}

impl SpanContext {
    fn new(flags: u8) -> Self {
        // Neither can be nothing: each number of this kind says of which kind it is.
        let (trace, span) = (Uuid::new_v4().as_u128(), Uuid::new_v4().as_u64_pair().0);
        Self { trace, span, flags }
    }

    fn ids(&self) -> Value {
        let (trace, span) = (
            format!("{:032x}", self.trace),
            format!("{:016x}", self.span),
        );
        json!({"traceId": trace, "spanId": span})
    }
}

/// It is no `traceparent`, and whoever finds it goes on as without one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoContext;

impl FromStr for SpanContext {
    type Err = NoContext;

    fn from_str(text: &str) -> Result<Self, NoContext> {
        let mut parts = text.splitn(5, '-');
        let mut number = |length: usize| {
            let part = parts.next().filter(|part| part.len() == length);
            let is_hex = |part: &&str| {
                part.bytes()
                    .all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
            };
            let part = part.filter(is_hex).ok_or(NoContext)?;
            u128::from_str_radix(part, 16).map_err(|_| NoContext)
        };
        let (version, trace, span, flags) = (number(2)?, number(32)?, number(16)?, number(2)?);
        // Later versions may say more behind it.
        let has_more = parts.next().is_some();
        if version == 0xff || (version == 0 && has_more) || trace == 0 || span == 0 {
            return Err(NoContext);
        }
        Ok(Self {
            trace,
            span: span as u64,
            flags: flags as u8,
        })
    }
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, flags } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{flags:02x}")
    }
}

/// Returns what a job keeps of the trace that it is posted in, if there is one.
pub(crate) fn kept(parent: &str, state: Option<&str>) -> Option<Vec<(String, Value)>> {
    let context: SpanContext = parent.parse().ok()?;
    let state = state.filter(|it| !it.is_empty() && is_state(it));
    let kept = [
        (PARENT, Some(context.to_string())),
        (STATE, state.map(str::to_owned)),
    ];
    let kept = kept
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_lowercase(), Value::from(value?))));
    Some(kept.collect())
}

/// Whether it is fit to be told to others.
fn is_state(text: &str) -> bool {
    text.len() <= LONGEST_STATE && text.bytes().all(|it| matches!(it, b' '..=b'~'))
}

/// Adds what is kept of a trace to the details of a job, unless they say so themselves.
pub(crate) fn add(kept: &[(String, Value)], details: &mut Details) {
    if let Details::Decoded(Value::Object(details)) = details {
        for (name, value) in kept {
            details.entry(name).or_insert_with(|| value.clone());
        }
    }
}

/// An attempt at a job, in a trace of its own: it may come days after the job was posted.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    context: SpanContext,
    /// Where the job was posted.
    link: Option<SpanContext>,
    state: Option<String>,
}

impl Span {
    /// Begins an attempt at a job with these details; a job that nobody traces has none, unless it
    /// `is_wanted` nevertheless.
    pub(crate) fn of(details: Option<&Details>, is_wanted: bool) -> Option<Self> {
        let fact = |name: &str| details?.get(&name.to_lowercase());
        let parent = fact(PARENT);
        let parent = parent.as_deref().and_then(Value::as_str);
        let link: Option<SpanContext> = parent.and_then(|it| it.parse().ok());
        if link.is_none() && !is_wanted {
            return None;
        }
        let state = link.and_then(|_| fact(STATE));
        let state = state.as_deref().and_then(Value::as_str);
        let state = state.filter(|it| is_state(it));
        Some(Self {
            context: SpanContext::new(link.map_or(1, |link| link.flags)),
            state: state.map(str::to_owned),
            link,
        })
    }

    pub(crate) fn variables(&self) -> [(&'static str, Option<String>); 2] {
        [
            (PARENT, Some(self.context.to_string())),
            (STATE, self.state.clone()),
        ]
    }

    pub(crate) fn trace(&self) -> String {
        format!("{:032x}", self.context.trace)
    }

    /// Returns the numbers of its trace and itself, and those of where the job was posted, as OTLP has them.
    pub(crate) fn ids(&self) -> (Value, Option<Value>) {
        (self.context.ids(), self.link.as_ref().map(SpanContext::ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    const PARENT_OF_ALL: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_no_context_is_none() {
        for text in [
            "",
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0é",
            "+0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(text.parse::<SpanContext>(), Err(NoContext), "{text}");
        }
        let context: SpanContext = PARENT_OF_ALL.parse().unwrap();
        assert_eq!(context.to_string(), PARENT_OF_ALL);
        let later = PARENT_OF_ALL.replacen("00", "cc", 1) + "-what will be";
        assert_eq!(later.parse(), Ok(context));
    }

    #[test]
    fn an_attempt_is_linked_to_where_its_job_was_posted() {
        let kept = kept(PARENT_OF_ALL, Some("a=b")).unwrap();
        let details = Value::Object(kept.into_iter().collect()).into();
        let span = Span::of(Some(&details), false).unwrap();
        let [(_, parent), (_, state)] = span.variables();
        let context: SpanContext = parent.unwrap().parse().unwrap();
        assert_eq!((context.flags, state.as_deref()), (1, Some("a=b")));
        assert_ne!(
            context.trace,
            PARENT_OF_ALL.parse::<SpanContext>().unwrap().trace
        );
        assert!(Span::of(Some(&json!({"traceparent": 7}).into()), false).is_none());
        assert!(Span::of(None, true).unwrap().link.is_none());
    }

    #[test]
    fn untrusted_traces_are_told_as_they_were_read() {
        let later = PARENT_OF_ALL.replacen("00", "cc", 1) + "-what will be";
        let texts = [PARENT_OF_ALL, &later];
        Corpus::of(Bounds::TYPED, texts).hold_for_text(|text| match text.parse::<SpanContext>() {
            Ok(context) => {
                same("told again", &Ok(context), &context.to_string().parse())?;
                Ok(Answer::Read)
            }
            Err(NoContext) => refused("it is none"),
        });
    }
}
