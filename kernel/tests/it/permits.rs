//! What a permit is good for: its own task, its process, its time, and what the registration names.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use ephor_base::{Budget, Product, Reach, Registration, SpanId};
use ephor_kernel::{DriverResult, Estimate, NoSecret, Permit};
use ephor_record::Fact;

use crate::world::{Does, PLENTY, Setup, answered, ask, code, direct, done, reader, running, said, text, until};

type Kept = Arc<Mutex<Option<Permit>>>;

/// A tool that keeps its permit, and runs until it is ended.
fn keeps() -> (Arc<Does>, Kept) {
    let kept = Kept::default();
    let hoard = kept.clone();
    let driver = Does::new(move |permit, _| {
        *hoard.lock().unwrap() = Some(permit);
        std::future::pending()
    });
    (driver, kept)
}

#[tokio::test]
async fn a_permit_is_good_until_its_deadline_and_not_a_moment_longer() {
    let (driver, kept) = keeps();
    let short =
        Registration { limits: ephor_base::Limits { deadline_ms: 30, ..reader("t.x").limits }, ..reader("t.keeps") };
    let world = Setup::new().tool(short, driver).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let mut call = process.call(direct("t.keeps", "{}")).unwrap();
    running(&mut call).await;
    until(|| kept.lock().unwrap().is_some()).await;
    let at_most = Duration::from_millis(30);
    assert!(kept.lock().unwrap().as_ref().unwrap().left().is_none_or(|left| left <= at_most));
    assert_eq!(code(&call.ended().await), "deadline");
    let permit = kept.lock().unwrap().take().unwrap();
    assert_eq!((permit.left(), permit.pid()), (None, process.pid()));
}

#[tokio::test]
async fn a_permit_is_no_good_once_its_process_is_over() {
    let (driver, kept) = keeps();
    let world = Setup::new().tool(reader("t.keeps"), driver).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let mut call = process.call(direct("t.keeps", "{}")).unwrap();
    running(&mut call).await;
    until(|| kept.lock().unwrap().is_some()).await;
    assert!(kept.lock().unwrap().as_ref().unwrap().left().is_some());
    assert!(world.kernel.kill(process.pid()));
    assert_eq!(kept.lock().unwrap().as_ref().unwrap().left(), None);
    call.ended().await.unwrap();
}

#[tokio::test]
async fn a_turn_that_has_had_its_time_begins_nothing_and_what_runs_in_it_is_ended() {
    let (driver, kept) = keeps();
    let mut setup = Setup::new().tool(reader("t.keeps"), driver);
    setup.turn.time = Duration::from_millis(200);
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.keeps", "{}")).await), "deadline");
    assert!(kept.lock().unwrap().take().is_some());
    assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "TurnLimit");
    assert_eq!(code(&done(&process, crate::world::reply(None)).await), "done");
}

#[tokio::test]
async fn what_a_tool_or_model_may_lease_and_reach_stands_in_its_registration_and_nothing_else_is_leased() {
    let leases = || {
        Does::new(|permit, context| async move {
            let mut came = Vec::new();
            for name in ["own", "other", "none"] {
                came.push(match context.lease(name).await {
                    Ok(secret) => secret.expose().clone(),
                    Err(NoSecret::NotRegistered(_)) => "not registered".to_owned(),
                    Err(NoSecret::Missing(_) | NoSecret::Over(_)) => "missing".to_owned(),
                });
            }
            let reached: Vec<bool> =
                ["https://a.example/v1", "https://b.example/v1", ""].map(|origin| permit.may_reach(origin)).into();
            let text_of = format!("{came:?} {reached:?}");
            match permit.task() {
                ephor_base::Task::Model(_) => answered(text(&text_of)),
                _ => said(&text_of),
            }
        })
    };
    let reach = Reach { secrets: vec!["own".into(), "none".into()], origins: vec!["https://a.example/v1".into()] };
    let all = r#"["1", "not registered", "missing"] [true, false, false]"#;
    let nothing = r#"["not registered", "not registered", "not registered"] [false, false, false]"#;
    let mut setup = Setup::new()
        .tool(Registration { reach: reach.clone(), ..reader("t.has") }, leases())
        .tool(reader("t.has-not"), leases())
        .model(leases());
    setup.secrets.extend([("own".into(), "1".into()), ("other".into(), "2".into())]);
    // What is registered of models stands there by their provider.
    setup.policy.models = reach;
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    for (action, expected) in
        [(direct("t.has", "{}"), all), (direct("t.has-not", "{}"), nothing), (ask(vec![SpanId(1)]), nothing)]
    {
        let ended = done(&process, action).await.unwrap();
        let came = match ended.outcome {
            ephor_base::Outcome::Done(Product::Tool(answer)) => answer.text,
            ephor_base::Outcome::Done(Product::Model(answer)) => answer.text,
            other => panic!("{other:?}"),
        };
        assert_eq!(came, expected);
    }
    let leased = world.facts(puppet.session).await;
    let leased: Vec<_> = leased
        .iter()
        .filter_map(|fact| if let Fact::Lease { secret } = fact { Some(secret.as_str()) } else { None })
        .collect();
    assert_eq!(leased, ["own"]);
}

#[tokio::test]
async fn a_request_to_one_provider_leases_no_other_ones_key_and_reaches_no_other_ones_origin() {
    let secrets = ["script", "script 2", "scripted", "other", "other script", " script", "script\u{a0}3", ""];
    let origins = ["script https://a.example/v1", "other https://b.example/v1", "https://a.example/v1", "script"];
    let tries = move |permit: Permit, context: ephor_kernel::CallContext| async move {
        let mut came = Vec::new();
        for name in secrets {
            if context.lease(name).await.is_ok() {
                came.push(name);
            }
        }
        came.extend(origins.into_iter().filter(|origin| permit.may_reach(origin)));
        answered(text(&came.join("|")))
    };
    let mut setup = Setup::new().model(Does::new(tries));
    setup.secrets.extend(secrets.map(|name| (name.into(), "1".into())));
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    setup.policy.models = Reach { secrets: all(&secrets), origins: all(&origins[..3]) };
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let ended = done(&process, ask(vec![SpanId(1)])).await.unwrap();
    let ephor_base::Outcome::Done(Product::Model(answer)) = ended.outcome else { panic!("{ended:?}") };
    assert_eq!(answer.text, "script|script 2|script https://a.example/v1");
}

/// A driver that keeps what it was told before the verdict.
struct Told(Mutex<Vec<String>>);

impl ephor_kernel::Driver for Told {
    fn estimate(&self, of: &Estimate<'_>) -> Budget {
        self.0.lock().unwrap().push(format!("{of:?}"));
        Budget::ZERO
    }
    fn run(&self, _: Permit, _: ephor_kernel::CallContext) -> ephor_kernel::Running {
        ephor_kernel::Running::new(async { DriverResult::done(Product::Delivered, Budget::ZERO) })
    }
}

#[tokio::test]
async fn a_driver_is_told_names_and_sizes_before_the_verdict_and_not_a_word_of_content() {
    let told = Arc::new(Told(Mutex::default()));
    let mut setup = Setup::new();
    setup.tools.push((crate::world::writer("t.write"), told.clone()));
    setup.model = told.clone();
    let world = setup.boot().await;
    let spec = ephor_kernel::SessionSpec { rights: ephor_governance::Rights::default(), ..world.spec() };
    let mut puppet = world.puppet_with(PLENTY, spec).await;
    let (process, _end) = puppet.in_turn("hunter2").await;
    assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "Denied");
    assert_eq!(code(&done(&process, direct("t.write", r#"{"path":"hunter2"}"#)).await), "Denied");
    let told = told.0.lock().unwrap();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|told| !told.contains("hunter2")), "{told:?}");
    assert!(told[0].contains("shown_bytes") && told[1].contains("t.write"), "{told:?}");
}
