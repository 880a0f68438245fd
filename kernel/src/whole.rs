//! What is finished once it has begun, also if no caller waits for it.

use tokio::sync::oneshot;

/// Does something in a task of its own. A caller that drops the future that waits for it leaves nothing half done. `None` if the
/// task was cut off, as by a runtime that ends.
pub(crate) async fn whole<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let (sender, done) = oneshot::channel();
    ephor_runtime::spawn(async move {
        // The caller may have left.
        let _left: Result<(), T> = sender.send(work.await);
    });
    done.await.ok()
}

/// As [`whole`], for what the caller has to give back: where the caller leaves before it has taken the result, `unclaimed` gives it back.
pub(crate) async fn claimed<T, E, U>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
    unclaimed: impl FnOnce(T) -> U + Send + 'static,
) -> Option<Result<T, E>>
where
    T: Clone + Send + 'static,
    E: Send + 'static,
    U: Future<Output = ()> + Send,
{
    let ((sender, done), (claim, claims)) = (oneshot::channel(), oneshot::channel::<()>());
    ephor_runtime::spawn(async move {
        let end = work.await;
        let given = end.as_ref().ok().cloned();
        // The caller may leave before this is sent, or between that and its next poll: then it claims nothing.
        let _left: Result<(), Result<T, E>> = sender.send(end);
        if let Some(given) = given
            && claims.await.is_err()
        {
            unclaimed(given).await;
        }
    });
    let end = done.await.ok()?;
    // The task waits for it.
    let _waits: Result<(), ()> = claim.send(());
    Some(end)
}
