//! The limit of lists that are read at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, Semaphore, SemaphorePermit};

/// The most lists that are read at once, each of another namespace. With one, a namespace with slow lists would delay those of all others.
const AT_ONCE: usize = 2;

/// Limits the lists of Events and Jobs that are read at once. The API server reads all Events of the namespace for one, and the accounts that
/// may create them there determine how large and slow it is.
#[derive(Debug)]
pub(super) struct ListLimit {
    namespaces: Mutex<HashMap<Arc<str>, Weak<AsyncMutex<()>>>>,
    all: Semaphore,
}

/// Permits one list until this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "the permit ends when it is dropped")]
pub(super) struct ListPermit<'a>(Option<SemaphorePermit<'a>>, OwnedMutexGuard<()>);

impl Default for ListLimit {
    fn default() -> Self {
        Self {
            namespaces: Mutex::default(),
            all: Semaphore::new(AT_ONCE),
        }
    }
}

impl ListLimit {
    /// Waits until a list of this namespace may be read.
    pub(super) async fn permit(&self, namespace: &Arc<str>) -> ListPermit<'_> {
        // In this order, a namespace that waits for its own list takes no permit of another one.
        let of_namespace = self.of(namespace).lock_owned().await;
        // It is never closed.
        ListPermit(self.all.acquire().await.ok(), of_namespace)
    }

    /// Returns what a list of this namespace locks.
    fn of(&self, namespace: &Arc<str>) -> Arc<AsyncMutex<()>> {
        let known = self.namespaces.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        if let Some(lists) = known.get(namespace).and_then(Weak::upgrade) {
            return lists;
        }
        known.retain(|_, lists| lists.strong_count() > 0);
        let lists = Arc::default();
        known.insert(namespace.clone(), Arc::downgrade(&lists));
        lists
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn lists_take_turns_by_namespace_and_few_are_read_at_once() {
        let lists = ListLimit::default();
        let [a, b, c] = ["a", "b", "c"].map(Arc::<str>::from);
        let of_a = lists.permit(&a).await;
        assert!(lists.permit(&a).now_or_never().is_none());
        let of_b = lists.permit(&b).await;
        assert!(lists.permit(&c).now_or_never().is_none());
        drop(of_a);
        let of_c = lists.permit(&c).await;
        drop((of_b, of_c));
        drop(lists.of(&c));
        assert_eq!(lists.namespaces.lock().unwrap().len(), 1);
    }
}
