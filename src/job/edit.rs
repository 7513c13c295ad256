//! What is to be changed of a job that was posted.

use serde_json::{Map, Value};

use super::Priority;

/// What of a posting is to be another; the rest of it stays as it is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Edit {
    pub(crate) name: Option<String>,
    pub(crate) priority: Option<Priority>,
    /// A JSON object that takes the place of the details.
    pub(crate) details: Option<Value>,
    /// Members that are set in the details, or taken out of them where they are none.
    pub(crate) facts: Vec<(String, Option<Value>)>,
}

impl Edit {
    /// Returns what the details become; nothing, if they stay, and an error if facts have no place.
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
