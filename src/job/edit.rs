//! Changes of a posted job.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Priority;

/// The changed parts of a posting; the rest stays as stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Edit {
    pub(crate) name: Option<String>,
    pub(crate) priority: Option<Priority>,
    /// A JSON object that replaces the details.
    pub(crate) details: Option<Value>,
    /// Members to set in the details.
    pub(crate) set: Vec<(String, Value)>,
    /// Members to remove from the details, after that.
    pub(crate) unset: Vec<String>,
}

impl Edit {
    /// Returns the new details, `None` if unchanged, or an error if the details are no object for the facts.
    pub(crate) fn details(&self, now: Option<&Value>) -> Result<Option<Value>, &'static str> {
        if !self.edits_members() {
            return Ok(self.details.clone());
        }
        let Some(Value::Object(members)) = self.details.as_ref().or(now) else {
            return Err("the details are not an object, or too large to read");
        };
        let mut members: Map<String, Value> = members.clone();
        members.extend(self.set.iter().cloned());
        for name in &self.unset {
            members.shift_remove(name);
        }
        Ok(Some(members.into()))
    }

    pub(crate) fn edits_members(&self) -> bool {
        !self.set.is_empty() || !self.unset.is_empty()
    }
}
