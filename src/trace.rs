//! W3C trace context: the trace of a job, and a span for each attempt.

use std::fmt;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::job::Details;

/// The variable with the parent span; in lower case also a detail of jobs.
pub(crate) const PARENT: &str = "TRACEPARENT";

pub(crate) const STATE: &str = "TRACESTATE";

pub(crate) const VARIABLES: [&str; 3] = [PARENT, STATE, "BAGGAGE"];

/// In bytes; W3C requires at least this.
const MAX_STATE: usize = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanContext {
    trace: u128,
    span: u64,
    flags: u8,
}

impl SpanContext {
    fn new(flags: u8) -> Self {
        // A zero id is invalid; a random UUID's version and variant bits keep both from zero.
        let (trace, span) = (Uuid::new_v4().as_u128(), Uuid::new_v4().as_u64_pair().0);
        Self { trace, span, flags }
    }

    /// Returns `None` for an invalid `traceparent`, which is ignored.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '-');
        let mut number = |length: usize| {
            let part = parts.next().filter(|part| part.len() == length)?;
            let is_hex = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
            let is_valid = part.bytes().all(is_hex);
            u128::from_str_radix(part, 16).ok().filter(|_| is_valid)
        };
        let (version, trace, span, flags) = (number(2)?, number(32)?, number(16)?, number(2)?);
        // Later versions may append fields.
        let has_more = parts.next().is_some();
        let is_known = version != 0xff && (version > 0 || !has_more);
        let (span, flags) = (span as u64, flags as u8);
        (is_known && trace > 0 && span > 0).then_some(Self { trace, span, flags })
    }

    fn ids(&self) -> Value {
        let (trace, span) = (
            format!("{:032x}", self.trace),
            format!("{:016x}", self.span),
        );
        json!({"traceId": trace, "spanId": span})
    }
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, flags } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{flags:02x}")
    }
}

/// Returns the details that a job stores of the trace of its posting.
pub(crate) fn kept(parent: &str, state: Option<&str>) -> Option<Vec<(String, Value)>> {
    let context = SpanContext::parse(parent)?;
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

fn is_state(text: &str) -> bool {
    text.len() <= MAX_STATE && text.bytes().all(|it| matches!(it, b' '..=b'~'))
}

/// Adds the stored trace to the details of a job, unless they set one.
pub(crate) fn add(kept: &[(String, Value)], details: &mut Details) {
    if kept.is_empty() || details.is_heavy() {
        return;
    }
    if let Value::Object(mut members) = details.value().into_owned() {
        for (name, value) in kept {
            members.entry(name).or_insert_with(|| value.clone());
        }
        *details = Value::Object(members).into();
    }
}

/// An attempt in a separate trace: it may come days after the posting.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    context: SpanContext,
    link: Option<SpanContext>,
    state: Option<String>,
}

impl Span {
    /// Begins the span of an attempt, if the details have a trace or `is_wanted` is set.
    pub(crate) fn of(details: Option<&Details>, is_wanted: bool) -> Option<Self> {
        let fact = |name: &str| details?.get(&name.to_lowercase());
        let parent = fact(PARENT);
        let parent = parent.as_deref().and_then(Value::as_str);
        let link = parent.and_then(SpanContext::parse);
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
    fn invalid_traceparent_is_ignored() {
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
            assert_eq!(SpanContext::parse(text), None, "{text}");
        }
        let context = SpanContext::parse(PARENT_OF_ALL).unwrap();
        assert_eq!(context.to_string(), PARENT_OF_ALL);
        let later = PARENT_OF_ALL.replacen("00", "cc", 1) + "-what will be";
        assert_eq!(SpanContext::parse(&later), Some(context));
    }

    #[test]
    fn attempt_is_linked_to_the_trace_of_the_posting() {
        let kept = kept(PARENT_OF_ALL, Some("a=b")).unwrap();
        let details = Value::Object(kept.into_iter().collect()).into();
        let span = Span::of(Some(&details), false).unwrap();
        let [(_, parent), (_, state)] = span.variables();
        let context = SpanContext::parse(&parent.unwrap()).unwrap();
        assert_eq!((context.flags, state.as_deref()), (1, Some("a=b")));
        assert_ne!(
            context.trace,
            SpanContext::parse(PARENT_OF_ALL).unwrap().trace
        );
        assert!(Span::of(Some(&json!({"traceparent": 7}).into()), false).is_none());
        assert!(Span::of(None, true).unwrap().link.is_none());
    }

    #[test]
    fn untrusted_traces_round_trip() {
        let later = PARENT_OF_ALL.replacen("00", "cc", 1) + "-what will be";
        let texts = [PARENT_OF_ALL, &later];
        Corpus::of(Bounds::TYPED, texts).hold_for_text(|text| match SpanContext::parse(text) {
            Some(context) => {
                let again = SpanContext::parse(&context.to_string());
                same("printed again", &Some(context), &again)?;
                Ok(Answer::Read)
            }
            None => refused("it is none"),
        });
    }
}
