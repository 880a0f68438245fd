//! The tools the operator has registered.

use std::collections::BTreeMap;

use ephor_base::{Arguments, Destinations, Registration, ToolName, arguments::Value};

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

/// Every registered tool. Fixed once made.
#[derive(Debug, Default)]
pub struct Registry(BTreeMap<ToolName, Tool>);

/// A registered tool with its compiled schema.
#[derive(Debug)]
pub struct Tool {
    registration: Registration,
    schema: jsonschema::Validator,
    /// The arguments that the schema names, each with the value that it declares for it.
    declared: BTreeMap<String, Option<Value>>,
}

/// In the list of critical arguments: every argument.
const ALL: &str = "*";

impl Registry {
    /// Registers all of `registrations`, or none.
    ///
    /// # Errors
    /// [`BadRegistration`] names the tool and what is wrong with it.
    pub fn new(registrations: impl IntoIterator<Item = Registration>) -> Result<Self, BadRegistration> {
        let mut registry = Self::default();
        registrations.into_iter().try_for_each(|registration| registry.add(registration))?;
        Ok(registry)
    }

    /// Registers one more tool, or changes nothing.
    ///
    /// # Errors
    /// [`BadRegistration`] names the tool and what is wrong with it.
    pub fn add(&mut self, registration: Registration) -> Result<(), BadRegistration> {
        let name = registration.name.clone();
        if self.0.contains_key(&name) {
            return Err(BadRegistration::Twice(name));
        }
        self.0.insert(name, Tool::new(registration)?);
        Ok(())
    }

    /// Registers a tool of a trace, whose declarations may name arguments that its schema leaves out.
    ///
    /// # Errors
    /// [`BadRegistration`] names the tool and what is wrong with it.
    pub(crate) fn add_foreign(&mut self, registration: Registration) -> Result<(), BadRegistration> {
        let name = registration.name.clone();
        if self.0.contains_key(&name) {
            return Err(BadRegistration::Twice(name));
        }
        self.0.insert(name, Tool::read(registration)?);
        Ok(())
    }

    /// The tool `name`.
    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.0.get(name)
    }

    /// The registration of `name`.
    #[must_use]
    pub fn find(&self, name: &ToolName) -> Option<&Registration> {
        self.tool(name).map(Tool::registration)
    }

    /// Every tool, by name.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.0.values()
    }

    /// Every registration, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Registration> {
        self.0.values().map(Tool::registration)
    }

    /// Checks `arguments` against the schema of `name`. An unregistered tool has no schema, so nothing fits it.
    ///
    /// # Errors
    /// The first [`SchemaFault`].
    pub fn validate(&self, name: &ToolName, arguments: &Arguments) -> Result<(), SchemaFault> {
        let tool = self.tool(name).ok_or_else(|| whole(format!("the tool `{name}` is not registered")))?;
        tool.validate(arguments)
    }
}

/// How many keys of its answers a registration names at most, and how long one is at most in bytes.
const MAX_KEYS: usize = 256;
const MAX_KEY: usize = 128;

impl Tool {
    /// Reads a registration.
    ///
    /// # Errors
    /// [`BadRegistration`] says what is wrong with it.
    pub fn new(registration: Registration) -> Result<Self, BadRegistration> {
        let tool = Self::read(registration)?;
        let registration = &tool.registration;
        let flow = &registration.flow;
        let ruled = flow.rules.iter().map(|rule| &rule.argument);
        let destinations = match &flow.destinations {
            Destinations::Critical => &[][..],
            Destinations::Of(names) => names,
        };
        if flow.keys.len() > MAX_KEYS || flow.keys.iter().any(|key| key.is_empty() || key.len() > MAX_KEY) {
            let reason = format!("`keys` has at most {MAX_KEYS} names, each of 1 to {MAX_KEY} bytes");
            return Err(BadRegistration::Schema { tool: registration.name.clone(), reason });
        }
        let planned = flow.identifies.iter().chain(destinations).chain(&flow.paging.size).chain(&flow.paging.page);
        let mut named = registration.paths.iter().chain(&registration.consequential).chain(ruled).chain(planned);
        match named.find(|argument| *argument != ALL && !tool.names(argument)) {
            Some(argument) => {
                Err(BadRegistration::Argument { tool: registration.name.clone(), argument: argument.clone() })
            }
            None => Ok(tool),
        }
    }

    fn read(registration: Registration) -> Result<Self, BadRegistration> {
        let fault = |reason: String| BadRegistration::Schema { tool: registration.name.clone(), reason };
        let schema: serde_json::Value =
            serde_json::from_str(&registration.schema).map_err(|error| fault(error.to_string()))?;
        let declared = declared(&schema).map_err(fault)?;
        let schema = jsonschema::validator_for(&schema).map_err(|error| fault(error.to_string()))?;
        Ok(Self { registration, schema, declared })
    }

    /// Its registration.
    #[must_use]
    pub const fn registration(&self) -> &Registration {
        &self.registration
    }

    /// Checks `arguments` against its schema.
    ///
    /// # Errors
    /// The first [`SchemaFault`].
    pub fn validate(&self, arguments: &Arguments) -> Result<(), SchemaFault> {
        let value = serde_json::to_value(arguments).map_err(|error| whole(error.to_string()))?;
        self.schema.validate(&value).map_err(|error| {
            let at = error.instance_path().to_string();
            SchemaFault { at: if at.is_empty() { "/".into() } else { at }, message: error.to_string() }
        })
    }

    /// Whether the argument `name` has to come from a trusted source: it is listed, or says where something goes. One that
    /// the schema of an acting tool does not name does too: nothing says that it does no harm.
    #[must_use]
    pub fn is_critical(&self, name: &str) -> bool {
        let listed = self.registration.consequential.iter().any(|own| own == name || own == ALL);
        let unknown = !self.declared.is_empty() && !self.declared.contains_key(name);
        let sends = match &self.registration.flow.destinations {
            Destinations::Critical => false,
            names @ Destinations::Of(_) => names.have(name),
        };
        listed || sends || (self.registration.flow.consequential && unknown)
    }

    /// Whether the argument `name` decides what a call does: it is critical, or a path in the workspace.
    #[must_use]
    pub fn decides(&self, name: &str) -> bool {
        self.is_critical(name) || self.registration.paths.iter().any(|path| path == name || path == ALL)
    }

    /// Whether a call of it changes or sends anything, or has an argument that has to come from a trusted source.
    #[must_use]
    pub fn acts(&self) -> bool {
        self.registration.flow.consequential || !self.registration.consequential.is_empty()
    }

    /// Whether the argument `name` says where something goes.
    #[must_use]
    pub fn is_destination(&self, name: &str) -> bool {
        self.is_critical(name) && self.registration.flow.destinations.have(name)
    }

    /// The value that the schema gives for the argument `name`, as its default or constant.
    pub(crate) fn usual(&self, name: &str) -> Option<&Value> {
        self.declared.get(name)?.as_ref()
    }

    /// Whether the schema names the argument `name`.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        self.declared.contains_key(name)
    }
}

fn whole(message: String) -> SchemaFault {
    SchemaFault { at: "/".into(), message }
}

/// The arguments of a schema, each with its `const` or `default`.
fn declared(schema: &serde_json::Value) -> Result<BTreeMap<String, Option<Value>>, String> {
    let Some(properties) = schema.get("properties").and_then(serde_json::Value::as_object) else {
        return Ok(BTreeMap::new());
    };
    let value = |declaration: &serde_json::Value| {
        let given = declaration.get("const").or_else(|| declaration.get("default"));
        given.map(|value| serde_json::from_value(value.clone())).transpose().map_err(|error| error.to_string())
    };
    properties.iter().map(|(name, declaration)| Ok((name.clone(), value(declaration)?))).collect()
}
