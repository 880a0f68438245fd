//! An action with everything in it resolved and nothing decided.

use std::{collections::BTreeMap, time::Duration};

use ephor_base::{
    Action, ActionKind, Arguments, Budget, CallId, Capability, Confidentiality, Digest, EndReason, FailureKind, Format,
    Kept, Leads, Located, Message, ModelAction, ModelTask, Place, Purpose, Registration, Reply, ReplyAction, ReplyTask,
    SessionId, Task, ToolAction, ToolName, ToolSpec, ToolTask, ToolUse, TurnLimit, cbor,
};
use ephor_chain::Veil;
use ephor_governance::{
    Ask, Gate, Registry, SchemaFault, Tool, ToolAsk,
    paths::{resolved, stays_inside},
};
use ephor_record::{Chosen, Content};

use super::{Refusal, Session, planning::PLAN_TOKENS, session::Shown};
use crate::{
    driver::{Estimate, Found, Sought},
    question::{Change, Files},
};

/// What was asked, in the door's own terms.
pub(crate) struct Asked {
    pub(crate) kind: ActionKind,
    pub(crate) call: CallId,
    /// Which attempt of the call, from 1.
    pub(crate) attempt: u32,
    /// The tool, the model, or the end of the turn.
    pub(crate) target: String,
    /// Over the canonical form of what was asked, under the veil of the session.
    pub(crate) digest: Digest,
    /// The most confidential text the asker had been shown.
    pub(crate) context: Confidentiality,
    pub(crate) content: Option<Content>,
    pub(crate) what: What,
    /// The model call and tool use it answers.
    pub(crate) chosen: Option<Chosen>,
}

/// What was asked, by kind.
pub(crate) enum What {
    Model(ModelTask),
    Reply(ReplyTask),
    Tool(Box<ToolCall>),
    /// A tool call that makes no sense, and why, for the model.
    Senseless {
        ask: Senseless,
        why: String,
    },
}

/// A tool call that makes sense, or nearly.
pub(crate) struct ToolCall {
    pub(crate) task: ToolTask,
    pub(crate) fault: Option<SchemaFault>,
    /// Its arguments that are paths and stay in the workspace by their spelling: each is followed before the call is judged.
    pub(crate) paths: Vec<(String, String)>,
    /// The arguments, with each path as the file has it that it leads to; none until all were followed, or if one leads nowhere.
    pub(crate) reached: Option<Arguments>,
    /// What it replaces, as its driver kept it. Of a call on the record: nothing.
    kept: Vec<Kept>,
}

impl ToolCall {
    fn new(task: ToolTask, tool: &Tool) -> Self {
        let paths = tool.registration().paths.iter().filter_map(|name| task.arguments.texts(name)).flatten();
        let paths = paths.filter(|(_, path)| stays_inside(path)).map(|(place, path)| (place, path.to_owned()));
        let (fault, paths): (_, Vec<_>) = (tool.validate(&task.arguments).err(), paths.collect());
        let reached = paths.is_empty().then(|| task.arguments.clone());
        Self { task, fault, paths, reached, kept: Vec::new() }
    }

    /// The bytes to be kept of what it replaces; none if it names no file that it writes, or one that cannot be kept.
    fn keeps(&self) -> Option<u64> {
        let files = &self.task.files;
        let writes = self.task.writes && !files.is_empty();
        writes
            .then(|| files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.leads.place()?.to_keep()?)))
            .flatten()
    }

    /// What it replaces, for the record; none if that was not kept. Only what the file held when the call was judged counts.
    pub(crate) fn kept(&self) -> Option<Vec<Kept>> {
        let all: BTreeMap<&str, &Kept> = self.kept.iter().map(|kept| (kept.path.as_str(), kept)).collect();
        let of = |file: &Located| {
            let place = file.leads.place()?;
            let kept = *all.get(place.path.as_str())?;
            (kept.held.as_deref().map(Digest::of) == place.content).then(|| kept.clone())
        };
        self.task.files.iter().map(of).collect()
    }

    /// Its paths lead there, each in its turn. Of a list each has to be the file's own.
    fn locate(&mut self, files: Vec<Located>) {
        let mut reached = (files.len() == self.paths.len()).then(|| self.task.arguments.clone());
        for ((name, written), file) in self.paths.iter().zip(&files) {
            reached = reached.and_then(|arguments| match &file.leads {
                _ if file.argument != *name => None,
                Leads::To(place) if resolved(written) == place.path => Some(arguments),
                Leads::To(place) => (!name.contains('/')).then(|| arguments.with_text(name, &place.path)),
                Leads::Nowhere(_) => None,
            });
        }
        (self.reached, self.task.files) = (reached, files);
    }

    /// What is to be followed, for the session that asks.
    pub(crate) fn sought(&self, session: SessionId) -> Option<Sought> {
        let (paths, ToolTask { name, arguments, workspace, writes, .. }) = (self.paths.clone(), &self.task);
        let (tool, arguments, workspace) = (name.clone(), arguments.clone(), workspace.clone());
        (!paths.is_empty()).then_some(Sought { session, tool, arguments, workspace, paths, replaces: *writes })
    }

    /// Why one of its paths cannot be judged, for the model.
    fn astray(&self) -> Option<String> {
        self.task.files.iter().find_map(|file| match &file.leads {
            Leads::Nowhere(why) => Some(why.clone()),
            Leads::To(_) => None,
        })
    }

    /// What a person should know of the files that it names.
    pub(crate) fn told(&self) -> Files {
        let mut told = Files::default();
        let places = || self.task.files.iter().filter_map(|file| file.leads.place());
        let made = |place: &Place| place.makes.as_ref().and_then(|makes| makes.content);
        for ((_, written), Located { leads, .. }) in self.paths.iter().zip(&self.task.files) {
            let Some(place) = leads.place() else { continue };
            if resolved(written) != place.path {
                told.notes.push(format!("`{written}` leads to `{}`", place.path));
            }
            if place.exists && place.names > 1 && place.content.is_some() {
                told.notes.push(format!(
                    "`{}` is one of {} names of one file; the others keep what it holds now",
                    place.path, place.names
                ));
            }
            let Some(makes) = place.makes.clone() else { continue };
            let is_source =
                |other: &&Place| other.makes.is_some() && made(other).is_none() && other.content == makes.content;
            let moved = makes.content.filter(|_| !place.exists).and_then(|_| places().find(is_source));
            told.changes.push(Change { path: place.path.clone(), moved: moved.map(|other| other.path.clone()), makes });
        }
        told
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Senseless {
    Unregistered,
    Malformed,
}

impl Asked {
    /// Resolves `action` in `session`, at the monotonic time `now`.
    pub(crate) fn resolve(
        session: &mut Session,
        veil: &Veil,
        gate: &Gate,
        fresh: CallId,
        now: Duration,
        action: &Action,
    ) -> Result<Self, Refusal> {
        match action {
            Action::Model(action) => Self::model(session, veil, gate, fresh, action),
            Action::Plan => Self::plan(session, veil, gate, fresh),
            Action::Reply(action) => Self::reply(session, veil, fresh, now, action),
            Action::Tool(ToolAction::Chosen { by, index }) => Self::chosen(session, veil, gate, fresh, *by, *index),
            Action::Tool(ToolAction::Direct { name, arguments }) => {
                Ok(Self::tool(veil, fresh, Meant::direct(session, gate.registry(), name, arguments.clone())))
            }
        }
    }

    fn model(session: &Session, veil: &Veil, gate: &Gate, call: CallId, action: &ModelAction) -> Result<Self, Refusal> {
        let shown = session.show(&action.prompt)?;
        let tools = if action.offer_tools { offered(session, gate) } else { Vec::new() };
        let content = Content::Prompt(shown.spans.clone());
        Ok(Self::question(session, veil, call, (shown, content), (tools, action.max_output_tokens, Purpose::Converse)))
    }

    /// The request to plan. The door says what is shown with it, and not the asker.
    fn plan(session: &Session, veil: &Veil, gate: &Gate, call: CallId) -> Result<Self, Refusal> {
        if !session.lacks_plan() {
            return Err(Refusal::UnknownReference("a turn that is to have a plan and has none".to_owned()));
        }
        let shown = session.request()?;
        let content = Content::Request(shown.spans.clone());
        let tools = plannable(session, gate);
        Ok(Self::question(session, veil, call, (shown, content), (tools, PLAN_TOKENS, Purpose::Plan)))
    }

    fn question(
        session: &Session,
        veil: &Veil,
        call: CallId,
        (shown, content): (Shown, Content),
        (tools, max_output_tokens, purpose): (Vec<ToolSpec>, u64, Purpose),
    ) -> Self {
        let model = session.spec.model.clone();
        let ordinal = if purpose == Purpose::Plan { session.plans } else { session.answered };
        let target = model.to_string();
        let task = ModelTask { model, messages: shown.messages, tools, max_output_tokens, ordinal, purpose };
        let failures = u32::try_from(session.model_failures().count()).unwrap_or(u32::MAX);
        Self {
            kind: ActionKind::Model,
            call,
            attempt: failures.saturating_add(1),
            target,
            digest: digest_of_prompt(veil, &task),
            context: shown.confidentiality,
            content: Some(content),
            what: What::Model(task),
            chosen: None,
        }
    }

    fn reply(
        session: &Session,
        veil: &Veil,
        call: CallId,
        now: Duration,
        action: &ReplyAction,
    ) -> Result<Self, Refusal> {
        let (text, context) = match action.answer {
            Some(answer) => session.answer_text(answer)?,
            None => (String::new(), Confidentiality::Public),
        };
        let text = with_notice(session, text, action.end);
        let reply = Reply {
            session: session.id,
            text: text.clone(),
            end: action.end,
            receipts: session.turn.as_ref().map(|turn| turn.receipts.clone()).unwrap_or_default(),
            report: session.turn.as_ref().map(|turn| turn.report_at(now)).unwrap_or_default(),
        };
        Ok(Self {
            kind: ActionKind::Reply,
            call,
            attempt: 1,
            target: action.end.code(),
            digest: digest_of_reply(veil, &text),
            context,
            content: Some(Content::Text(text)),
            what: What::Reply(ReplyTask { reply }),
            chosen: None,
        })
    }

    fn chosen(
        session: &mut Session,
        veil: &Veil,
        gate: &Gate,
        fresh: CallId,
        by: CallId,
        index: u32,
    ) -> Result<Self, Refusal> {
        let chosen = Chosen { of: by, index };
        let (meant, context) = Meant::of_use(session, gate, chosen)?;
        let (call, attempt) = session.call_for_use(by, index, fresh)?;
        Ok(Self { attempt, context, chosen: Some(chosen), ..Self::tool(veil, call, meant) })
    }

    fn tool(veil: &Veil, call: CallId, meant: Meant) -> Self {
        Self {
            kind: ActionKind::Tool,
            call,
            attempt: 1,
            digest: meant.digest(veil),
            target: meant.target,
            context: Confidentiality::Internal,
            content: Some(meant.content),
            what: meant.what,
            chosen: None,
        }
    }

    /// Its paths lead there: from here on it is the call of these files.
    pub(crate) fn locate(&mut self, veil: &Veil, found: Vec<Found>) {
        let What::Tool(tool) = &mut self.what else { return };
        let (files, kept): (Vec<_>, Vec<_>) = found.into_iter().map(|found| (found.located, found.kept)).unzip();
        tool.kept = kept.into_iter().flatten().collect();
        let pieces = [tool.task.name.as_str().as_bytes().to_vec(), cbor::to_vec(&tool.task.arguments)];
        let content = Content::Call { arguments: tool.task.arguments.clone(), files: files.clone() };
        tool.locate(files);
        (self.digest, self.content) = (digest_with(veil, &pieces, &content), Some(content));
    }

    /// What governance is asked.
    pub(crate) fn ask<'a>(&'a self, registry: &'a Registry) -> Ask<'a> {
        self.what.ask(registry)
    }

    /// How confidential what the call is told and answers is at least.
    pub(crate) fn level(&self, registry: &Registry) -> Confidentiality {
        let tool = self.tool_call().and_then(|tool| registry.find(&tool.task.name));
        tool.map_or(self.context, |tool| self.context.max(tool.confidentiality))
    }

    /// The task, if it makes sense.
    pub(crate) fn task(&self) -> Option<Task> {
        match &self.what {
            What::Model(task) => Some(Task::Model(task.clone())),
            What::Reply(task) => Some(Task::Reply(task.clone())),
            What::Tool(tool) => Some(Task::Tool(tool.task.clone())),
            What::Senseless { .. } => None,
        }
    }

    /// What its driver may be told before the verdict.
    pub(crate) fn estimate(&self) -> Option<Estimate<'_>> {
        match &self.what {
            What::Model(task) => {
                let (model, max_output_tokens) = (&task.model, task.max_output_tokens);
                let (provider, name, shown_bytes) = (model.provider.as_str(), model.name.as_str(), bytes_of(task));
                Some(Estimate::Model { provider, name, shown_bytes, max_output_tokens, purpose: task.purpose })
            }
            What::Reply(task) => Some(Estimate::Reply { text_bytes: task.reply.text.len() }),
            What::Tool(tool) => {
                let ToolTask { name, arguments, limits, .. } = &tool.task;
                Some(Estimate::Tool { name, arguments_bytes: cbor::to_vec(arguments).len(), limits: *limits })
            }
            What::Senseless { .. } => None,
        }
    }

    /// What is wrong with the call in itself, for the model.
    pub(crate) fn fault(&self) -> Option<String> {
        self.what.fault()
    }

    /// The tool and its arguments, of a tool call.
    pub(crate) fn tool_call(&self) -> Option<&ToolCall> {
        self.what.tool_call()
    }

    /// A tool's arguments as JSON text, for people, each path as the file has it; empty for other kinds.
    pub(crate) fn arguments_text(&self) -> String {
        match &self.what {
            What::Tool(tool) => tool.reached.as_ref().unwrap_or(&tool.task.arguments).to_json(),
            What::Model(_) | What::Reply(_) | What::Senseless { .. } => String::new(),
        }
    }

    /// The least a call of this kind uses, whatever its driver estimates.
    pub(crate) const fn base_budget(&self) -> Budget {
        let tool_calls = if matches!(self.kind, ActionKind::Tool) { 1 } else { 0 };
        Budget { tool_calls, ..Budget::ZERO }
    }
}

/// A tool call as it was meant, from whichever caller.
pub(crate) struct Meant {
    pub(crate) what: What,
    pub(crate) target: String,
    pub(crate) content: Content,
    /// What its digest is made of.
    pieces: [Vec<u8>; 2],
}

impl Meant {
    /// A tool use of a model's answer, and what its model had been shown.
    pub(crate) fn of_use(
        session: &Session,
        gate: &Gate,
        Chosen { of, index }: Chosen,
    ) -> Result<(Self, Confidentiality), Refusal> {
        let (tool_use, context) = session.tool_use(of, index)?;
        let (raw_name, raw_arguments) = (&tool_use.name, &tool_use.arguments);
        let name = raw_name.parse::<ToolName>().ok().filter(|name| gate.registry().find(name).is_some());
        let meant = match (name, Arguments::parse(raw_arguments)) {
            (None, _) => {
                let why = no_such_tool(session, gate, raw_name);
                Self::senseless(raw_name, raw_arguments, Senseless::Unregistered, why)
            }
            (Some(_), Err(error)) => Self::senseless(raw_name, raw_arguments, Senseless::Malformed, error.to_string()),
            (Some(name), Ok(arguments)) => Self::direct(session, gate.registry(), &name, arguments),
        };
        Ok((meant, context))
    }

    /// A call that names its tool and arguments.
    pub(crate) fn direct(session: &Session, registry: &Registry, name: &ToolName, arguments: Arguments) -> Self {
        let Some(known) = registry.tool(name) else {
            let why = format!("there is no tool `{name}`");
            return Self::senseless(name.as_str(), &arguments.to_json(), Senseless::Unregistered, why);
        };
        let registration = known.registration();
        let task = ToolTask {
            name: name.clone(),
            arguments: arguments.clone(),
            files: Vec::new(),
            workspace: session.spec.workspace.clone(),
            writes: registration.capability == Capability::FsWrite,
            limits: registration.limits,
        };
        Self {
            target: name.to_string(),
            pieces: [name.as_str().as_bytes().to_vec(), cbor::to_vec(&arguments)],
            content: Content::Arguments(arguments),
            what: What::Tool(Box::new(ToolCall::new(task, known))),
        }
    }

    /// The call that a verdict on the record speaks of.
    pub(crate) fn recorded(
        session: &Session,
        gate: &Gate,
        target: &str,
        chosen: Option<Chosen>,
        content: Option<&Content>,
    ) -> Result<Self, String> {
        let mut meant = match (chosen, content) {
            (Some(chosen), _) => Self::of_use(session, gate, chosen).map_err(|refusal| refusal.to_string())?.0,
            (None, Some(Content::Arguments(arguments) | Content::Call { arguments, .. })) => {
                let name: ToolName = target.parse().map_err(|_| "a call names no tool")?;
                Self::direct(session, gate.registry(), &name, arguments.clone())
            }
            (None, Some(Content::Text(text))) => {
                let (name, arguments) = text.split_once(' ').unwrap_or((text, ""));
                Self::senseless(name, arguments, Senseless::Unregistered, String::new())
            }
            (None, _) => return Err("the arguments of a call are not on the record".to_owned()),
        };
        if let Some(Content::Call { files, .. }) = content {
            meant.locate(files);
        }
        if content == Some(&meant.content) && target == meant.target {
            return Ok(meant);
        }
        Err("the arguments of a call are not those of the tool use it names".to_owned())
    }

    /// Its paths lead there.
    fn locate(&mut self, files: &[Located]) {
        let What::Tool(tool) = &mut self.what else { return };
        if files.is_empty() {
            return;
        }
        tool.locate(files.to_vec());
        self.content = Content::Call { arguments: tool.task.arguments.clone(), files: files.to_vec() };
    }

    /// What a person is told of it, with these files: the tool, its arguments, and what there is to know of them.
    pub(crate) fn told(mut self, files: &[Located]) -> Option<(ToolName, Arguments, Files)> {
        self.locate(files);
        let tool = self.what.tool_call()?;
        let arguments = tool.reached.as_ref().unwrap_or(&tool.task.arguments);
        Some((tool.task.name.clone(), arguments.clone(), tool.told()))
    }

    fn digest(&self, veil: &Veil) -> Digest {
        digest_with(veil, &self.pieces, &self.content)
    }

    fn senseless(name: &str, arguments: &str, ask: Senseless, why: String) -> Self {
        Self {
            // A model may write anything for a name, and this is public.
            target: name.parse::<ToolName>().map_or_else(|_| "(not a tool name)".into(), |name| name.to_string()),
            pieces: [name.as_bytes().to_vec(), arguments.as_bytes().to_vec()],
            content: Content::Text(format!("{name} {arguments}")),
            what: What::Senseless { ask, why },
        }
    }

    /// The arguments with each path as the file has it.
    pub(crate) fn reached(&self) -> Option<&Arguments> {
        self.what.tool_call().and_then(|tool| tool.reached.as_ref())
    }

    /// The tool and its arguments, of a call that names both.
    pub(crate) fn call(&self) -> Option<(&ToolName, &Arguments)> {
        self.what.tool_call().map(|tool| (&tool.task.name, &tool.task.arguments))
    }

    /// What is wrong with the call in itself, for the model.
    pub(crate) fn fault(&self) -> Option<String> {
        self.what.fault()
    }

    /// Whether there is a tool of that name, whatever was said to it.
    pub(crate) const fn is_known(&self) -> bool {
        !matches!(&self.what, What::Senseless { ask: Senseless::Unregistered, .. })
    }
}

impl What {
    /// What governance is asked.
    pub(crate) fn ask<'a>(&'a self, registry: &'a Registry) -> Ask<'a> {
        match self {
            Self::Model(_) => Ask::Model,
            Self::Reply(_) => Ask::Reply,
            Self::Senseless { ask: Senseless::Unregistered, .. } => Ask::Tool(ToolAsk::Unregistered),
            Self::Senseless { ask: Senseless::Malformed, .. } => Ask::Tool(ToolAsk::Malformed),
            Self::Tool(asked) => Ask::Tool(match registry.tool(&asked.task.name) {
                Some(tool) => {
                    let fit = asked.fault.as_ref().map_or(Ok(()), Err);
                    let reached = asked.reached.as_ref();
                    ToolAsk::Known {
                        tool,
                        arguments: &asked.task.arguments,
                        reached,
                        workspace: asked.task.workspace.as_str(),
                        keeps: asked.keeps(),
                        fit,
                    }
                }
                None => ToolAsk::Unregistered,
            }),
        }
    }

    fn tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::Tool(tool) => Some(tool),
            Self::Model(_) | Self::Reply(_) | Self::Senseless { .. } => None,
        }
    }

    fn fault(&self) -> Option<String> {
        match self {
            Self::Senseless { why, .. } => Some(why.clone()),
            Self::Tool(tool) => tool.fault.as_ref().map(ToString::to_string).or_else(|| tool.astray()),
            Self::Model(_) | Self::Reply(_) => None,
        }
    }
}

/// Over a tool, its arguments, and the files that they name.
fn digest_with(veil: &Veil, [name, arguments]: &[Vec<u8>; 2], content: &Content) -> Digest {
    let files = if let Content::Call { files, .. } = content { files.as_slice() } else { &[] };
    digest_of_call(veil, name, arguments, files)
}

fn digest_of_call(veil: &Veil, name: &[u8], arguments: &[u8], files: &[Located]) -> Digest {
    if files.is_empty() {
        veil.digest(&[name, arguments])
    } else {
        veil.digest(&[name, arguments, &cbor::to_vec(&files)])
    }
}

/// The digest of a task, over all that its driver is given to act on: the one of the intent that a permit for it rests on.
pub(crate) fn digest_of(veil: &Veil, task: &Task) -> Digest {
    match task {
        Task::Model(task) => digest_of_prompt(veil, task),
        Task::Reply(task) => digest_of_reply(veil, &task.reply.text),
        Task::Tool(ToolTask { name, arguments, files, .. }) => {
            digest_of_call(veil, name.as_str().as_bytes(), &cbor::to_vec(arguments), files)
        }
    }
}

fn digest_of_reply(veil: &Veil, text: &str) -> Digest {
    veil.digest(&[text.as_bytes()])
}

fn digest_of_prompt(veil: &Veil, task: &ModelTask) -> Digest {
    let (model, most) = (task.model.to_string(), task.max_output_tokens.to_string());
    // Which message each text belongs to, so that no two prompts look alike.
    let shape: Vec<_> = task.messages.iter().map(|message| texts(message, &mut |_| ())).collect();
    let shape = cbor::to_vec(&shape);
    let purpose: &[u8] = if task.purpose == Purpose::Plan { b"plan" } else { b"converse" };
    let mut pieces: Vec<&[u8]> = vec![model.as_bytes(), most.as_bytes(), purpose, &shape];
    each_text(task, |text| pieces.push(text.as_bytes()));
    veil.digest(&pieces)
}

/// The bytes of everything a model is shown.
fn bytes_of(task: &ModelTask) -> usize {
    let mut bytes = 0_usize;
    each_text(task, |text| bytes = bytes.saturating_add(text.len()));
    bytes
}

/// Everything a model is shown, in order.
fn each_text<'a>(task: &'a ModelTask, mut f: impl FnMut(&'a str)) {
    for message in &task.messages {
        texts(message, &mut f);
    }
    for ToolSpec { name, description, schema } in &task.tools {
        [name.as_str(), description, schema].into_iter().for_each(&mut f);
    }
}

/// The texts of a message, in order; says whose it is, and how many they are.
fn texts<'a>(message: &'a Message, f: &mut dyn FnMut(&'a str)) -> (u8, u64) {
    let (role, said): (u8, Vec<&str>) = match message {
        Message::System(spans) => (0, spans.iter().map(|span| span.text.as_str()).collect()),
        Message::User(spans) => (1, spans.iter().map(|span| span.text.as_str()).collect()),
        Message::Assistant(answer) => {
            let uses = answer.tool_uses.iter().flat_map(|ToolUse { id, name, arguments }| [id, name, arguments]);
            (2, std::iter::once(&answer.text).chain(uses).map(String::as_str).collect())
        }
        Message::Tool { id, name, failed, spans } => {
            let role = if *failed { 4 } else { 3 };
            (role, [id, name].into_iter().chain(spans.iter().map(|span| &span.text)).map(String::as_str).collect())
        }
    };
    let count = said.len() as u64;
    said.into_iter().for_each(f);
    (role, count)
}

/// The tools the session is entitled to, for the model.
pub(crate) fn offered(session: &Session, gate: &Gate) -> Vec<ToolSpec> {
    let spec = |tool: &Registration| ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        schema: tool.schema.clone(),
    };
    entitled(session, gate).map(spec).collect()
}

/// The tools the session is entitled to, for a planner: each says besides what it does whether it acts, which of its arguments decide, and
/// how it answers.
fn plannable(session: &Session, gate: &Gate) -> Vec<ToolSpec> {
    let spec = |tool: &Registration| {
        let known = gate.registry().tool(&tool.name);
        let critical = || tool.consequential.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let acts = known.is_none_or(Tool::acts);
        let says = match (acts, tool.consequential.is_empty()) {
            (false, _) => "It only reads.".to_owned(),
            (true, true) => "It acts; every argument decides.".to_owned(),
            (true, false) => format!("It acts; what decides: {}.", critical()),
        };
        let answers = match tool.flow.format {
            Format::None => "",
            Format::Text => " It answers plain text.",
            Format::Json | Format::Yaml | Format::Csv if tool.flow.keys.is_empty() => " It answers records.",
            Format::Json | Format::Yaml | Format::Csv => {
                &format!(" It answers records with the keys {}.", tool.flow.keys.join(", "))
            }
        };
        let description = format!("{} {says}{answers}", tool.description.trim_end());
        ToolSpec { name: tool.name.clone(), description, schema: tool.schema.clone() }
    };
    entitled(session, gate).map(spec).collect()
}

/// The registrations of the tools the session is entitled to, but for those that are for other tools.
fn entitled<'a>(session: &Session, gate: &'a Gate) -> impl Iterator<Item = &'a Registration> {
    let rights = session.spec.rights.intersect(&gate.policy().rights());
    let is_entitled = move |tool: &&Registration| {
        let allowed = rights.allow(tool.capability) && rights.are_for(&tool.name);
        allowed && !gate.policy().never.contains(&tool.name) && !tool.description.is_empty()
    };
    gate.registry().iter().filter(is_entitled)
}

fn no_such_tool(session: &Session, gate: &Gate, name: &str) -> String {
    let names: Vec<String> = offered(session, gate).iter().map(|tool| tool.name.to_string()).collect();
    let name: String = name.chars().take(80).collect();
    format!("there is no tool `{name}`; the tools are {}", names.join(", "))
}

/// A reply that ends for another reason than an answer says so.
pub(crate) fn with_notice(session: &Session, text: String, end: EndReason) -> String {
    let notice = match end {
        EndReason::Replied => return text,
        EndReason::Cancelled => "Cancelled.".to_owned(),
        EndReason::BudgetSpent(resource) => {
            format!("The budget of this agent is spent ({}). Raise it to go on.", resource.name())
        }
        EndReason::LimitHit(limit) => format!("Stopped: {}.", exceeded(limit)),
        EndReason::Failed(kind) => failed(session, kind),
        EndReason::Refused => "The policy of this node does not allow it.".to_owned(),
        EndReason::Crashed => "The agent crashed more often than its supervisor allows.".to_owned(),
        EndReason::CutOff => "Cut off: the answer reached the output limit. `max_output_tokens` under `[limits]` in ephor.toml sets it; a model may have a lower one.".to_owned(),
        EndReason::ModelRefused => "The model, or a filter of its provider, refused to go on.".to_owned(),
    };
    if text.is_empty() { notice } else { format!("{text}\n\n{notice}") }
}

const fn exceeded(limit: TurnLimit) -> &'static str {
    match limit {
        TurnLimit::Rounds => "there were too many rounds of tool calls",
        TurnLimit::Time => "the turn took too long",
        TurnLimit::UnknownTools => "tools were called that do not exist",
        TurnLimit::Repeats => "the same call was repeated, each time with the same result",
        TurnLimit::Calls => "the turn made too many calls",
    }
}

/// What became of a request to the model, in our own words: those of its provider are nothing to reply with.
fn failed(session: &Session, kind: FailureKind) -> String {
    let status = session.model_failures().next().and_then(|failure| failure.status);
    let status = status.map(|status| format!(" {status}")).unwrap_or_default();
    match session.model_failures().count() {
        0 | 1 => format!("{}{status}.", kind.words()),
        attempts => format!("{}{status} after {attempts} attempts.", kind.words()),
    }
}
