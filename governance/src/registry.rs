//! The tools the operator has registered.

use std::collections::BTreeMap;

use ephor_base::{Arguments, Registration, ToolName};

/// A tool cannot be registered. Nothing is.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BadRegistration {
    /// Two tools of one name.
    #[error("the tool `{0}` is registered twice")]
    Twice(ToolName),
    /// The schema is not JSON Schema.
    #[error("the schema of `{tool}` is not JSON Schema: {reason}")]
    Schema {
        /// The tool.
        tool: ToolName,
        /// What is wrong.
        reason: String,
    },
    /// A path or consequential argument that the schema does not name.
    #[error("the registration of `{tool}` names the argument `{argument}`, which its schema does not have")]
    Argument {
        /// The tool.
        tool: ToolName,
        /// The argument.
        argument: String,
    },
}

/// Arguments that do not fit the schema.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{at}: {message}")]
pub struct SchemaFault {
    /// JSON pointer into the arguments; `/` for the whole.
    pub at: String,
    /// What is wrong there.
    pub message: String,
}

/// Every registered tool with its compiled schema. Fixed once made.
#[derive(Debug, Default)]
pub struct Registry(BTreeMap<ToolName, Registered>);

#[derive(Debug)]
struct Registered {
    registration: Registration,
    schema: jsonschema::Validator,
}

impl Registry {
    /// Registers all of `registrations`, or none.
    ///
    /// # Errors
    /// [`BadRegistration`] names the tool and what is wrong with it.
    pub fn new(registrations: impl IntoIterator<Item = Registration>) -> Result<Self, BadRegistration> {
        let mut tools = BTreeMap::new();
        for registration in registrations {
            let name = registration.name.clone();
            let registered = Registered::new(registration)?;
            if tools.insert(name.clone(), registered).is_some() {
                return Err(BadRegistration::Twice(name));
            }
        }
        Ok(Self(tools))
    }

    /// The registration of `name`.
    #[must_use]
    pub fn find(&self, name: &ToolName) -> Option<&Registration> {
        self.0.get(name).map(|tool| &tool.registration)
    }

    /// Every registration, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Registration> {
        self.0.values().map(|tool| &tool.registration)
    }

    /// Checks `arguments` against the schema of `name`. An unregistered tool has no schema, so nothing fits it.
    ///
    /// # Errors
    /// The first [`SchemaFault`].
    pub fn validate(&self, name: &ToolName, arguments: &Arguments) -> Result<(), SchemaFault> {
        let whole = |message: String| SchemaFault { at: "/".into(), message };
        let tool = self.0.get(name).ok_or_else(|| whole(format!("the tool `{name}` is not registered")))?;
        let value = serde_json::to_value(arguments).map_err(|error| whole(error.to_string()))?;
        tool.schema.validate(&value).map_err(|error| {
            let at = error.instance_path().to_string();
            SchemaFault { at: if at.is_empty() { "/".into() } else { at }, message: error.to_string() }
        })
    }
}

impl Registered {
    fn new(registration: Registration) -> Result<Self, BadRegistration> {
        let tool = &registration.name;
        let fault = |reason: String| BadRegistration::Schema { tool: tool.clone(), reason };
        let schema: serde_json::Value =
            serde_json::from_str(&registration.schema).map_err(|error| fault(error.to_string()))?;
        let named = registration.paths.iter().chain(&registration.consequential);
        for argument in named {
            if schema.get("properties").and_then(|known| known.get(argument)).is_none() {
                return Err(BadRegistration::Argument { tool: tool.clone(), argument: argument.clone() });
            }
        }
        let schema = jsonschema::validator_for(&schema).map_err(|error| fault(error.to_string()))?;
        Ok(Self { registration, schema })
    }
}
