//! `jobboard schema`: JSON schemas of the output.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    exit::CommandError,
    output::{Cell, Column, Fit, Output, Row, Tone},
};

const PREFIX: &str = "urn:jobboard:";

macro_rules! schemas {
    ($($name:literal)+) => {
        [$(($name, include_str!(concat!("../../schemas/", $name, ".json")))),+]
    };
}

pub(super) const SCHEMAS: [(&str, &str); 31] = schemas![
    "check" "common" "conductor" "count" "diagnosis" "draft" "drill" "dump" "error" "event" "explanation"
    "failure" "file" "flow" "hanging" "help" "job" "mend" "note" "owner" "pause" "ping" "plan" "posted" "report" "result" "schema"
    "selftest" "setting" "status" "text"
];

/// Print the JSON Schema of a command's output
///
/// A schema describes one object: alone, in an array, or on its own line. `help output` lists which command prints
/// which form. Without NAME, lists the schemas.
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// Name of a schema or command
    name: Option<String>,
}

#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    title: String,
    printed_by: Vec<String>,
}

impl Row for Listed {
    fn fields(&self) -> Vec<Cow<'_, str>> {
        vec![
            self.name.into(),
            (&self.title).into(),
            self.printed_by.join(" ").into(),
        ]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::toned(Tone::Strong, self.name),
            Cell::new(&self.title),
            Cell::toned(Tone::Faint, self.printed_by.join(" ")),
        ]
    }
}

const COLUMNS: &[Column] = &[
    Column::new("schema", Fit::Whole),
    Column::new("describes", Fit::Shrinks),
    Column::new("printed by", Fit::Shrinks),
];

pub(crate) fn run(out: &mut Output, args: &SchemaArgs) -> anyhow::Result<()> {
    let Some(name) = &args.name else {
        return out.table(COLUMNS, SCHEMAS.map(|(name, _)| listed(name)));
    };
    let Some(schema) = own(name).or_else(|| of_command(name)) else {
        let message = format!("no schema or command `{name}` with JSON output");
        return Err(CommandError::usage(message)
            .hint("`jobboard schema` lists the schemas")
            .into());
    };
    let schema = bundled(schema);
    let text = serde_json::to_string_pretty(&schema)?;
    // The text is JSON already, for every output format.
    out.pass(format!("{text}\n").as_bytes())?;
    out.flush()
}

fn listed(name: &'static str) -> Listed {
    let schema = own(name).unwrap_or_default();
    let commands = schema["x-printed-by"].as_array().into_iter().flatten();
    let printed_by = commands.filter_map(|it| Some(it.as_str()?.to_owned()));
    Listed {
        name,
        title: schema["title"].as_str().unwrap_or_default().to_owned(),
        printed_by: printed_by.collect(),
    }
}

fn own(name: &str) -> Option<Value> {
    let (_, text) = SCHEMAS.iter().find(|(own, _)| *own == name)?;
    serde_json::from_str(text).ok()
}

fn of_command(command: &str) -> Option<Value> {
    let kinds = SCHEMAS.map(|(name, _)| listed(name)).into_iter();
    let kinds = kinds.filter(|it| it.printed_by.iter().any(|by| by == command));
    let kinds: Vec<_> = kinds
        .map(|it| json!({ "$ref": format!("{PREFIX}{}", it.name) }))
        .collect();
    (!kinds.is_empty()).then(|| {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("Output of {command}"),
            "anyOf": [{ "anyOf": kinds }, { "type": "array", "items": { "anyOf": kinds } }],
        })
    })
}

fn bundled(mut schema: Value) -> Value {
    let mut needed = Vec::new();
    references(&schema, &mut needed);
    let mut at = 0;
    while let Some(name) = needed.get(at).cloned() {
        let other = own(&name).unwrap_or_default();
        references(&other, &mut needed);
        schema["$defs"][name] = other;
        at += 1;
    }
    schema
}

fn references(part: &Value, names: &mut Vec<String>) {
    match part {
        Value::Object(map) => {
            let reference = map.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|it| it.strip_prefix(PREFIX)?.split('#').next());
            if let Some(name) = name.filter(|it| !names.iter().any(|known| known == it)) {
                names.push(name.to_owned());
            }
            map.values().for_each(|part| references(part, names));
        }
        Value::Array(parts) => parts.iter().for_each(|part| references(part, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::{
        board::EventKind,
        commands::{
            Cli,
            check::metric::Metric,
            selftest::{BoardGrade, Grade, Promise},
        },
        exit::PluginState,
        job::{Outcome, Priority, State},
        problem::{Code, Group, Risk, Severity},
    };

    const SILENT: [&str; 2] = ["run", "dash"];

    #[test]
    fn commands_and_schemas_match() {
        let program = Cli::command();
        let printed: Vec<_> = SCHEMAS
            .iter()
            .flat_map(|it| listed(it.0).printed_by)
            .collect();
        for name in &printed {
            assert!(program.find_subcommand(name).is_some(), "{name}");
        }
        for command in program.get_subcommands().map(clap::Command::get_name) {
            let is_silent = SILENT.contains(&command);
            let is_printed = printed.iter().any(|it| it == command);
            assert!(is_silent || is_printed, "{command}");
        }
    }

    #[test]
    fn each_schema_reference_resolves() {
        for (name, _) in SCHEMAS {
            let schema = own(name).unwrap();
            assert_eq!(schema["$id"], format!("{PREFIX}{name}"));
            assert_ne!(listed(name).title, "", "{name}");
            let whole = bundled(schema);
            each_leads_somewhere(&whole, &whole);
        }
    }

    fn each_leads_somewhere(part: &Value, within: &Value) {
        let within = match part["$id"].as_str() {
            Some(_) => part,
            None => within,
        };
        if let Some(reference) = part["$ref"].as_str() {
            let (name, pointer) = reference.split_once('#').unwrap_or((reference, ""));
            let target = match name.strip_prefix(PREFIX) {
                Some(name) => own(name),
                None => Some(within.clone()),
            };
            let target = target.unwrap_or_else(|| panic!("{reference}"));
            assert!(target.pointer(pointer).is_some(), "{reference}");
        }
        match part {
            Value::Object(map) => map
                .values()
                .for_each(|part| each_leads_somewhere(part, within)),
            Value::Array(parts) => parts
                .iter()
                .for_each(|part| each_leads_somewhere(part, within)),
            _ => {}
        }
    }

    #[test]
    fn enumerations_equal_those_of_the_program() {
        fn are<T: std::fmt::Display>(schema: &str, pointer: &str, names: &[T]) {
            let schema = own(schema).unwrap();
            let listed = schema.pointer(pointer).unwrap().as_array().unwrap();
            let listed: Vec<_> = listed.iter().filter_map(Value::as_str).collect();
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            assert_eq!(listed, names, "{pointer}");
        }
        are("common", "/$defs/state/enum", State::ALL);
        are("common", "/$defs/priority/enum", Priority::ALL);
        are("job", "/properties/outcome/enum", Outcome::ALL);
        are("event", "/properties/event/enum", EventKind::ALL);
        are("common", "/$defs/code/enum", Code::ALL);
        are("common", "/$defs/group/enum", Group::ALL);
        are("common", "/$defs/severity/enum", Severity::ALL);
        are("common", "/$defs/risk/enum", Risk::ALL);
        are("check", "/$defs/state/enum", PluginState::ALL);
        let metric = "/properties/metrics/items/properties/name/enum";
        are("check", &format!("/anyOf/0{metric}"), Metric::ALL);
        let promise = "/$defs/promise/properties";
        are("selftest", &format!("{promise}/promise/enum"), Promise::ALL);
        are("selftest", &format!("{promise}/grade/enum"), Grade::ALL);
        are(
            "selftest",
            "/anyOf/0/properties/verdict/enum",
            BoardGrade::ALL,
        );
    }
}
