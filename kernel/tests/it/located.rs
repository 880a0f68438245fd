//! Paths of calls, and the files that they lead to.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use ephor_base::{Budget, Decision, Difference, Kept, Leads, Located, Makes, Task};
use ephor_chain::Private;
use ephor_kernel::{CallContext, Driver, Estimate, Found, Locating, Permit, Question, Retrial, Running, Sought};
use ephor_record::{Content, Fact, RulingOn};
use futures_util::FutureExt;

use crate::world::{Does, PLENTY, Setup, World, code, direct, done, located, question, reader, said, writer};

/// A tool in whose workspace every path leads to one place, or nowhere; without one it does not say.
struct Linked {
    to: Option<Result<&'static str, &'static str>>,
    runs: AtomicUsize,
}

impl Linked {
    fn new(to: Option<Result<&'static str, &'static str>>) -> Arc<Self> {
        Arc::new(Self { to, runs: AtomicUsize::new(0) })
    }
}

/// One that has nothing to say of paths.
struct Silent;

impl Driver for Silent {
    fn estimate(&self, _: &Estimate<'_>) -> Budget {
        Budget::ZERO
    }
    fn run(&self, _: Permit, _: CallContext) -> Running {
        Running::new(async { said("it ran") })
    }
}

impl Driver for Linked {
    fn estimate(&self, _: &Estimate<'_>) -> Budget {
        Budget::ZERO
    }
    fn locate(&self, sought: Sought) -> Locating {
        let Some(to) = self.to else { return Silent.locate(sought) };
        let mut files = located(&sought, ephor_base::Digest::of(b"content"));
        for Located { leads, .. } in &mut files {
            match (to, &mut *leads) {
                (Ok(path), Leads::To(place)) => place.path = path.to_owned(),
                (Err(why), _) => *leads = Leads::Nowhere(why.to_owned()),
                _ => {}
            }
        }
        Locating::new(std::future::ready(files.into_iter().map(Found::only).collect()))
    }
    fn run(&self, permit: Permit, _: CallContext) -> Running {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let Task::Tool(task) = permit.task() else { panic!("not a tool task") };
        let Leads::To(place) = &task.files[0].leads else { panic!("it was permitted") };
        let text: &'static str = place.path.clone().leak();
        Running::new(async move { said(text) })
    }
}

async fn world(tool: ephor_base::Registration, driver: Arc<Linked>) -> World {
    let mut setup = Setup::new();
    setup.tools.push((tool, driver));
    setup.boot().await
}

#[tokio::test]
async fn a_path_that_leads_nowhere_or_that_nobody_follows_is_denied_and_the_model_is_told() {
    for (to, words) in [(None, "its driver does not say"), (Some(Err("`notes` leads out")), "`notes` leads out")] {
        let driver = Linked::new(to);
        let world = world(reader("t.read"), driver.clone()).await;
        let mut puppet = world.puppet(PLENTY).await;
        let mut seen = world.kernel.watch(puppet.session, true);
        let (process, _end) = puppet.in_turn("go").await;
        let refused = done(&process, direct("t.read", r#"{"path":"notes"}"#)).await.unwrap_err();
        assert!(refused.to_string().contains("path leads nowhere"), "{refused}");
        assert_eq!(driver.runs.load(Ordering::SeqCst), 0);
        let mut told = String::new();
        while let Some(Some(seen)) = seen.recv().now_or_never() {
            told.push_str(&format!("{seen:?}"));
        }
        assert!(told.contains(words), "{told}");
    }
}

#[tokio::test]
async fn leave_for_a_tool_does_not_cover_a_link_to_what_other_programs_use() {
    for (to, asked) in [("docs/notes.md", false), (".git/config", true), (".github/workflows/ci.yml", true)] {
        let world = world(writer("t.write"), Linked::new(Some(Ok(to)))).await;
        let mut puppet = world.puppet(PLENTY).await;
        let mut seen = world.kernel.watch(puppet.session, true);
        let on = RulingOn::Tools(vec!["t.write".parse().unwrap()]);
        let statement = world.ruling(puppet.session, on, ephor_base::Digest::of(&[]));
        world.kernel.rule(statement.sign(&world.operator)).await.unwrap();
        let (process, _end) = puppet.in_turn("go").await;
        let call = process.call(direct("t.write", r#"{"path":"notes.md"}"#)).unwrap();
        if asked {
            let asked = question(&mut seen).await;
            let text = asked.text.as_str();
            assert!(text.contains(&format!("path: \"{to}\"")), "{text}");
            assert!(text.contains(&format!("`notes.md` leads to `{to}`")), "{text}");
            let statement = world.ruling(asked.session, RulingOn::Ticket(asked.ticket), asked.digest);
            world.kernel.rule(statement.sign(&world.operator)).await.unwrap();
        }
        assert_eq!(code(&call.ended().await), "done");
    }
}

#[tokio::test]
async fn the_record_holds_both_names_and_decides_the_same_again() {
    let world = world(reader("t.read"), Linked::new(Some(Ok("docs/notes.md")))).await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    done(&process, direct("t.read", r#"{"path":"notes.md"}"#)).await.unwrap();
    let mut retrial = Retrial::default();
    let mut calls = 0;
    for stored in world.record().await {
        if let Private::Open(Content::Call { arguments, files }) = &stored.content {
            let Leads::To(place) = &files[0].leads else { panic!("it was permitted") };
            assert_eq!((arguments.text("path"), place.path.as_str()), (Some("notes.md"), "docs/notes.md"));
            calls += 1;
        }
        let is_verdict = matches!(stored.entry.fact, Fact::Verdict { .. });
        if let Some(retried) = retrial.take(&stored) {
            let again = retried.again.unwrap().verdict;
            assert_eq!(again, retried.recorded);
            assert!(is_verdict && again.decision == Decision::Permit);
        }
    }
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn what_a_call_replaces_is_on_the_disk_before_it_does() {
    let mut tool = writer("t.write");
    tool.flow.reversible = true;
    let driver = Does::new(|_, _| async { said("done") });
    let mut setup = Setup::new();
    setup.tools.push((tool.clone(), driver));
    let here = setup.boot().await;
    let mut puppet = here.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    done(&process, direct("t.write", r#"{"path":"notes.md"}"#)).await.unwrap();
    let kept = |stored: &ephor_chain::Stored| match (&stored.entry.fact, &stored.content) {
        (Fact::Intent { .. }, Private::Open(Content::Kept(kept))) => Some(kept.clone()),
        _ => None,
    };
    let kept: Vec<_> = here.record().await.iter().filter_map(kept).collect();
    let held = Some(b"content".to_vec());
    assert_eq!(kept, [vec![Kept { path: "notes.md".into(), held, mode: 0o644 }]]);

    // A driver that keeps nothing, or something else, runs nothing.
    let driver = Linked::new(Some(Ok("notes.md")));
    let here = world(tool, driver.clone()).await;
    let mut puppet = here.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let refused = done(&process, direct("t.write", r#"{"path":"notes.md"}"#)).await.unwrap_err();
    assert!(refused.to_string().contains("as its driver kept it"), "{refused}");
    assert_eq!(driver.runs.load(Ordering::SeqCst), 0);
}

/// Says what a call makes of its file.
struct Making(Mutex<Makes>);

impl Driver for Making {
    fn estimate(&self, _: &Estimate<'_>) -> Budget {
        Budget::ZERO
    }
    fn locate(&self, sought: Sought) -> Locating {
        assert_eq!((sought.tool.as_str(), sought.arguments.text("path")), ("t.write", Some("notes.md")));
        let mut files = located(&sought, ephor_base::Digest::of(b"content"));
        for Located { leads, .. } in &mut files {
            if let Leads::To(place) = leads {
                place.makes = Some(self.0.lock().unwrap().clone());
            }
        }
        Locating::new(std::future::ready(files.into_iter().map(Found::only).collect()))
    }
    fn run(&self, _: Permit, _: CallContext) -> Running {
        Running::new(async { said("it ran") })
    }
}

/// The question about a call whose driver says that it makes this of its file.
async fn asked_about(makes: Makes, more: &str) -> Question {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":true}"#;
    let tool = ephor_base::Registration { schema: schema.into(), ..writer("t.write") };
    let mut setup = Setup::new();
    setup.tools.push((tool, Arc::new(Making(Mutex::new(makes)))));
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    let arguments = format!(r#"{{"path":"notes.md","more":{}}}"#, serde_json::Value::from(more));
    let _call = process.call(direct("t.write", &arguments)).unwrap();
    question(&mut seen).await
}

#[tokio::test]
async fn a_person_is_shown_what_a_call_makes_of_a_file_and_answers_to_that() {
    let makes = |content: Option<&[u8]>, lines: Vec<String>| Makes {
        content: content.map(ephor_base::Digest::of),
        difference: Difference::new(lines, 0, Vec::new()).unwrap(),
        form: None,
    };
    let lines = |count: usize| (0..count).map(|at| format!("+{at}{}", "x".repeat(70))).collect::<Vec<_>>();
    let short = asked_about(makes(Some(b"a"), vec!["-b".to_owned(), "+a".to_owned()]), "").await;
    let text = short.text.as_str();
    assert!(text.contains("  \"notes.md\" changes:\n  -b\n  +a\n"), "{text}");
    // All of it where there is room; where there is none, both ends.
    let text = asked_about(makes(Some(b"a"), lines(Difference::LINES)), "").await.text;
    assert!(lines(Difference::LINES).iter().all(|line| text.as_str().contains(&format!("\n  {line}\n"))), "{text:?}");
    let text = asked_about(makes(Some(b"a"), lines(Difference::LINES)), &"y".repeat(9000)).await.text;
    let told = text.as_str();
    // Half of the difference, however much room the arguments would take.
    let shown = told.lines().filter(|line| line.starts_with("  +")).count();
    let left_out = format!("  … {} more lines", Difference::LINES - shown);
    assert!(shown + 1 >= Difference::LINES / 2, "{told}");
    assert!(shown == Difference::LINES || told.contains(&left_out), "{told}");
    assert!(told.contains("\n  +0x") && told.contains("\n  +9x") && told.lines().count() <= 21, "{told}");
    assert!(told.lines().all(|line| line.chars().count() <= 78) && told.contains("path: \"notes.md\""), "{told}");
    for (makes, words) in [
        (makes(None, vec!["-b".to_owned()]), "\"notes.md\" is removed\n  -b\n"),
        (makes(Some(b"a"), Vec::new()), "\"notes.md\" is written; how it differs cannot be shown as text\n"),
    ] {
        let text = asked_about(makes, "").await.text;
        assert!(text.as_str().contains(words), "{text:?}");
    }
}

#[tokio::test]
async fn what_a_call_makes_of_a_file_is_a_part_of_what_is_permitted() {
    let makes = |content: &[u8]| Makes {
        content: Some(ephor_base::Digest::of(content)),
        difference: Difference::default(),
        form: None,
    };
    let driver = Arc::new(Making(Mutex::new(makes(b"a"))));
    let mut setup = Setup::new();
    setup.tools.push((writer("t.write"), driver.clone()));
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    let mut digests = Vec::new();
    for content in [b"a", b"a", b"b"] {
        *driver.0.lock().unwrap() = makes(content);
        let call = process.call(direct("t.write", r#"{"path":"notes.md"}"#)).unwrap();
        let asked = question(&mut seen).await;
        let statement = world.ruling(asked.session, RulingOn::Ticket(asked.ticket), asked.digest);
        world.kernel.rule(statement.sign(&world.operator)).await.unwrap();
        assert_eq!(code(&call.ended().await), "done");
        digests.push(asked.digest);
    }
    assert!(digests[0] == digests[1] && digests[1] != digests[2], "{digests:?}");
    let mut made = Vec::new();
    for stored in world.record().await {
        if let (Fact::Intent { .. } | Fact::Verdict { .. }, Private::Open(Content::Call { files, .. })) =
            (&stored.entry.fact, &stored.content)
        {
            let Leads::To(place) = &files[0].leads else { panic!("it was permitted") };
            made.push(place.makes.clone().and_then(|makes| makes.content));
        }
    }
    let digest = |content: &[u8]| Some(ephor_base::Digest::of(content));
    made.dedup();
    assert_eq!(made, [digest(b"a"), digest(b"b")]);
}
