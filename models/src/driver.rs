//! The one driver of all models.

use std::sync::Arc;

use ephor_base::{
    Budget, Failure, FailureKind, ModelAnswer, ModelRef, ModelTask, Product, Purpose, Task, Usage, outcome::tokens_of,
};
use ephor_kernel::{CallContext, Driver, DriverResult, Estimate, Permit, Running, check_plan};

use crate::{Price, Provider, Served, UnknownModel, meter::Meter, planning, scout, script, sink::Unseen};

/// Asks whichever model a request names.
#[derive(Clone, Debug)]
pub struct Models(Arc<Providers>);

/// Those that are reached over a network.
#[derive(Debug)]
struct Providers(Vec<Provider>);

impl Models {
    /// The models of a node: the two that are built in, and those of `providers`.
    #[must_use]
    pub fn new(providers: Vec<Provider>) -> Self {
        Self(Arc::new(Providers(providers)))
    }

    /// Who answers requests to `model`, and from where.
    ///
    /// # Errors
    /// [`UnknownModel::Provider`], if there is no such provider.
    pub fn served(&self, model: &ModelRef) -> Result<Served, UnknownModel> {
        let host = match model.provider.as_str() {
            "builtin" | "script" => None,
            name => Some(self.0.of(name).ok_or_else(|| self.0.unknown(name))?.host()),
        };
        Ok(Served { model: model.to_string(), provider: model.provider.clone(), host })
    }
}

impl Driver for Models {
    fn estimate(&self, of: &Estimate<'_>) -> Budget {
        let Estimate::Model { provider, name, shown_bytes, max_output_tokens, purpose } = *of else {
            return Budget::ZERO;
        };
        let served = self.0.of(provider);
        let tokens = |bytes| served.map_or_else(|| tokens_of(bytes), |served| served.tokens(name, bytes));
        let (input, output) = match purpose {
            Purpose::Converse => (tokens(shown_bytes), max_output_tokens),
            // It is repaired once: then the model is shown its answer too.
            Purpose::Plan => {
                let shown = tokens(shown_bytes.saturating_add(planning::ADDED));
                let twice = max_output_tokens.saturating_mul(2);
                (shown.saturating_mul(2).saturating_add(max_output_tokens), twice)
            }
        };
        let usage = Usage { input, output, estimated: true, ..Usage::default() };
        self.0.budget(provider, name, usage)
    }

    fn run(&self, permit: Permit, context: CallContext) -> Running {
        let providers = Arc::clone(&self.0);
        Running::new(async move {
            let Task::Model(task) = permit.task() else {
                let failure = Failure::new(FailureKind::Rejected, "the models' driver was given something else to do");
                return DriverResult::failed(failure, Budget::ZERO);
            };
            let mut meter = Meter::new(task);
            // Dropping the future that loses closes the connection.
            let end = tokio::select! {
                biased;
                () = context.cancelled() => Err(Failure::new(FailureKind::Interrupted, "cancelled")),
                end = providers.ask(&permit, &context, task, &mut meter) => end,
            };
            let ModelRef { provider, name, .. } = &task.model;
            match end {
                Ok(answer) => {
                    let used = providers.budget(provider, name, answer.usage);
                    DriverResult::done(Product::Model(answer), used)
                }
                Err(failure) => DriverResult::failed(failure, providers.budget(provider, name, meter.partial())),
            }
        })
    }
}

impl Providers {
    async fn ask(
        &self,
        permit: &Permit,
        context: &CallContext,
        task: &ModelTask,
        meter: &mut Meter,
    ) -> Result<ModelAnswer, Failure> {
        let ModelRef { provider, name, .. } = &task.model;
        match (provider.as_str(), name.as_str()) {
            ("script", _) => script::ask(task, &mut context.preview(), meter).await,
            ("builtin", "scout") => Ok(scout::ask(task, &mut context.preview(), meter).await),
            (name, _) => {
                let unknown = || Failure::new(FailureKind::Rejected, self.unknown(name).to_string());
                let provider = self.of(name).ok_or_else(unknown)?;
                match task.purpose {
                    Purpose::Plan => plan(provider, permit, context, task, meter).await,
                    Purpose::Converse => provider.ask(permit, context, (task, &mut context.preview()), meter).await,
                }
            }
        }
    }

    fn of(&self, name: &str) -> Option<&Provider> {
        self.0.iter().find(|provider| provider.name() == name)
    }

    fn unknown(&self, name: &str) -> UnknownModel {
        UnknownModel::provider(name, self.0.iter().map(Provider::name))
    }

    fn budget(&self, provider: &str, name: &str, usage: Usage) -> Budget {
        let price = self.of(provider).map_or(Price::FREE, |provider| provider.price(name));
        Budget { tokens: usage.input.saturating_add(usage.output), micro_usd: price.of(&usage), ..Budget::ZERO }
    }
}

/// Asks for a plan in words, and once more where what came is none.
async fn plan(
    provider: &Provider,
    permit: &Permit,
    context: &CallContext,
    task: &ModelTask,
    meter: &mut Meter,
) -> Result<ModelAnswer, Failure> {
    let worded = planning::worded(task);
    *meter = Meter::new(&worded);
    let first = provider.ask(permit, context, (&worded, &mut Unseen), meter).await?;
    let Err(why) = check_plan(planning::object_in(&first.text), &task.tools) else { return Ok(as_plan(first)) };
    let again = planning::repaired(&worded, &first.text, &why);
    *meter = Meter::behind(&again, first.usage);
    provider.ask(permit, context, (&again, &mut Unseen), meter).await.map(as_plan)
}

/// An answer that is the object in its text and calls nothing.
fn as_plan(answer: ModelAnswer) -> ModelAnswer {
    let text = planning::object_in(&answer.text).to_owned();
    ModelAnswer { text, tool_uses: Vec::new(), state: None, ..answer }
}

#[cfg(test)]
mod tests;
