//! Changes of a posted job.

use serde_json::{Map, Value};

use super::Priority;

/// The changed parts of a posting; the rest stays as stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Edit {
    pub(crate) name: Option<String>,
    pub(crate) priority: Option<Priority>,
    /// A JSON object that replaces the details.
    pub(crate) details: Option<Value>,
    /// Members to set in the details, or to remove (`None`).
    pub(crate) facts: Vec<(String, Option<Value>)>,
}

impl Edit {
    /// Returns the new details, `None` if unchanged, or an error if the details are no object for the facts.
    pub(crate) fn details(&self, now: Option<&Value>) -> Result<Option<Value>, &'static str> {
        if self.facts.is_empty() {
            return Ok(self.details.clone());
        }
        let Some(Value::Object(members)) = self.details.as_ref().or(now) else {
            return Err("the details are not an object, or too large to read");
        };
        let mut members: Map<String, Value> = members.clone();
        for (name, value) in &self.facts {
            match value {
                Some(value) => _ = members.insert(name.clone(), value.clone()),
                None => _ = members.shift_remove(name),
            }
        }
        Ok(Some(members.into()))
    }
}
