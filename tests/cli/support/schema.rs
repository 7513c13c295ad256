//! Compares printed JSON with its schema, which must describe all of it.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use serde_json::{Map, Value, json};

/// The number of values checked per listing.
const MAX_VALUES: usize = 200;

pub(crate) static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    let files = fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    files
        .map(|file| {
            let name = file
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let schema = serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap();
            (name, schema)
        })
        .collect()
});

/// Requires that the JSON of a run matches the schemas of its command.
pub(super) fn judge(arguments: &[String], stdout: &str, stderr: &str) {
    let ours = arguments.split(|it| it == "--").next().unwrap_or_default();
    let printed_by = |word: &String| !kinds_of(word).is_empty();
    let command = ours.iter().find(|word| printed_by(word));
    for line in stderr
        .lines()
        .filter(|line| line.starts_with("{\"error\":"))
    {
        check_values(line, &["error"], arguments);
    }
    need!(command = command);
    if command == "conduct" {
        for line in stderr.lines().filter(|line| line.starts_with("{\"time\":")) {
            check_values(line, &["note"], arguments);
        }
        return;
    }
    // The output of a user's command is free.
    let is_ours = ours.len() == arguments.len() || command == "post";
    let is_json = |word: &String| ["--json", "json", "jsonl"].contains(&word.as_str());
    if is_ours && (ours.iter().any(is_json) || command == "dump") {
        check_values(stdout, &kinds_of(command), arguments);
    }
}

/// Returns the schemas of a command's output.
fn kinds_of(command: &str) -> Vec<&'static str> {
    let kinds = SCHEMAS.iter().filter(|(_, schema)| {
        let commands = schema["x-printed-by"].as_array();
        commands.is_some_and(|commands| commands.iter().any(|it| it == command))
    });
    kinds.map(|(name, _)| name.as_str()).collect()
}

/// Requires that each value matches one of these schemas, or is an array of them.
fn check_values(text: &str, kinds: &[&str], arguments: &[String]) {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    // A killed run prints less; its test notices that.
    for value in values.map_while(Result::ok).take(MAX_VALUES) {
        let parts = match &value {
            Value::Array(parts) => parts.as_slice(),
            _ => std::slice::from_ref(&value),
        };
        for part in parts.iter().take(MAX_VALUES) {
            let wrong: Vec<_> = kinds
                .iter()
                .map_while(|kind| mismatch(kind, part).err())
                .collect();
            let is_one = wrong.len() < kinds.len();
            assert!(
                is_one,
                "{arguments:?} printed {part}, which is none of {kinds:?}: {wrong:#?}"
            );
        }
    }
}

/// Returns the difference between a value and its schema.
pub(crate) fn mismatch(schema: &str, value: &Value) -> Result<(), String> {
    let document = &SCHEMAS[schema];
    Part {
        document,
        schema: document,
    }
    .holds(value, schema, &[])
}

/// A part of a schema, and the document of its references.
#[derive(Clone, Copy)]
struct Part<'a> {
    document: &'a Value,
    schema: &'a Value,
}

impl<'a> Part<'a> {
    /// Requires that a value matches; an object may have these additional names.
    fn holds(self, value: &Value, at: &str, besides: &[&str]) -> Result<(), String> {
        let unless = |holds: bool, what: &str| match holds {
            true => Ok(()),
            false => Err(format!("{at}: {value} {what}")),
        };
        for (keyword, says) in self.schema.as_object().unwrap() {
            match keyword.as_str() {
                "$ref" => {
                    let own: Vec<_> = self.properties().map(|it| it.0.as_str()).collect();
                    self.target(says)
                        .holds(value, at, &[&own, besides].concat())?;
                }
                "type" => unless(is_of_any(value, says), &format!("is no {says}"))?,
                "enum" => unless(
                    says.as_array().unwrap().contains(value),
                    &format!("is none of {says}"),
                )?,
                "const" => unless(says == value, &format!("is not {says}"))?,
                "minimum" => unless(
                    value.as_f64().is_none_or(|it| it >= says.as_f64().unwrap()),
                    "is too small",
                )?,
                "format" => {
                    assert_eq!(says, "date-time");
                    let time = value.as_str().map(chrono::DateTime::parse_from_rfc3339);
                    unless(time.is_none_or(|time| time.is_ok()), "is no time")?;
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.part(says)
                            .holds(item, &format!("{at}[{index}]"), &[])?;
                    }
                }
                "propertyNames" => {
                    for name in value.as_object().into_iter().flat_map(Map::keys) {
                        self.part(says).holds(&json!(name), at, &[])?;
                    }
                }
                "anyOf" => {
                    let parts = says.as_array().unwrap().iter();
                    let wrong: Vec<_> = parts
                        .map_while(|it| self.part(it).holds(value, at, besides).err())
                        .collect();
                    unless(
                        wrong.len() < says.as_array().unwrap().len(),
                        &wrong.join("; "),
                    )?;
                }
                "required" => {
                    for name in says.as_array().unwrap() {
                        let is_there = value
                            .as_object()
                            .is_none_or(|it| it.contains_key(name.as_str().unwrap()));
                        unless(is_there, &format!("has no {name}"))?;
                    }
                }
                "properties" => self.members(value, at, besides)?,
                "additionalProperties" if self.schema.get("properties").is_none() => {
                    self.members(value, at, besides)?
                }
                "$schema"
                | "$id"
                | "$defs"
                | "title"
                | "description"
                | "x-printed-by"
                | "additionalProperties" => {}
                other => panic!("{at}: `{other}` is not understood here"),
            }
        }
        Ok(())
    }

    /// Requires that all members of an object are described and match.
    fn members(self, value: &Value, at: &str, besides: &[&str]) -> Result<(), String> {
        let Some(object) = value.as_object() else {
            return Ok(());
        };
        let others = self
            .schema
            .get("additionalProperties")
            .filter(|it| it.is_object());
        let is_open = self.schema.get("additionalProperties").is_some();
        let referred = self.schema.get("$ref").map(|it| self.target(it));
        for (name, member) in object {
            let at = format!("{at}.{name}");
            let known = self.properties().find(|it| it.0 == name).map(|it| it.1);
            match known.or(others) {
                Some(schema) => self.part(schema).holds(member, &at, &[])?,
                None if is_open || besides.contains(&name.as_str()) => {}
                None if referred.is_some_and(|it| it.properties().any(|it| it.0 == name)) => {}
                None => return Err(format!("{at}: is in no schema")),
            }
        }
        Ok(())
    }

    fn properties(self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::iter)
    }

    fn part(self, schema: &'a Value) -> Self {
        Self { schema, ..self }
    }

    fn target(self, reference: &Value) -> Self {
        let reference = reference.as_str().unwrap();
        let (name, pointer) = reference.split_once('#').unwrap_or((reference, ""));
        let document = match name.strip_prefix("urn:jobboard:") {
            Some(name) => &SCHEMAS[name],
            None => self.document,
        };
        Self {
            document,
            schema: document.pointer(pointer).unwrap(),
        }
    }
}

fn is_of_any(value: &Value, types: &Value) -> bool {
    let types = types
        .as_array()
        .map_or(std::slice::from_ref(types), Vec::as_slice);
    types
        .iter()
        .any(|name| is_of(value, name.as_str().unwrap()))
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    }
}
