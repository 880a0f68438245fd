//! What is finished once it has begun, whoever waits for it.

use tokio::sync::oneshot;

/// Does something in a task of its own. Whoever drops the future that waits for it leaves nothing half done. `None` if the task was
/// cut off, as by a runtime that ends.
pub(crate) async fn whole<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    let (sender, done) = oneshot::channel();
    crate::runtime::spawn(async move {
        // Whoever wanted it may have left.
        let _left: Result<(), T> = sender.send(work.await);
    });
    done.await.ok()
}
