//! The labels and annotations by which a scheduler finds the pods of a group.

use crate::contract::{Context, PodSet};

impl PodSet {
    /// Sets a label by which a scheduler finds the pods of a group. Another value of the runtime or of a patch is replaced, with a warning:
    /// the pods would be missing in the group, which would never start, or be counted in another one.
    ///
    /// Needs the claim to write `pod-sets[P].pod-labels[KEY]`.
    pub fn join_by_label(&self, ctx: &Context, key: &str, value: &str) {
        let found = self.pod_label(key);
        self.warn_of_replaced(ctx, ("labels", key), found, value);
        self.set_pod_label(key, value);
    }

    /// Sets an annotation by which a scheduler finds the pods of a group; otherwise like [`Self::join_by_label`].
    ///
    /// Needs the claim to write `pod-sets[P].pod-annotations[KEY]`.
    pub fn join_by_annotation(&self, ctx: &Context, key: &str, value: &str) {
        let found = self.pod_annotation(key);
        self.warn_of_replaced(ctx, ("annotations", key), found, value);
        self.set_pod_annotation(key, value);
    }

    /// Removes a label by which a scheduler would count the pods in a group with which they do not start, with a warning.
    ///
    /// Needs the claim to write `pod-sets[P].pod-labels[KEY]`.
    pub fn leave_by_label(&self, ctx: &Context, key: &str) {
        let found = self.pod_label(key);
        self.warn_of_removed(ctx, ("labels", key), found);
        self.remove_pod_label(key);
    }

    /// Removes an annotation by which a scheduler would count the pods in a group; otherwise like [`Self::leave_by_label`].
    ///
    /// Needs the claim to write `pod-sets[P].pod-annotations[KEY]`.
    pub fn leave_by_annotation(&self, ctx: &Context, key: &str) {
        let found = self.pod_annotation(key);
        self.warn_of_removed(ctx, ("annotations", key), found);
        self.remove_pod_annotation(key);
    }

    fn warn_of_replaced(
        &self,
        ctx: &Context,
        (list, key): (&str, &str),
        found: Option<String>,
        value: &str,
    ) {
        if let Some(found) = found.filter(|found| found != value) {
            let message = format!(
                "is `{found}`, but the scheduler finds the pods of the group by `{value}`, which replaces it; remove it"
            );
            ctx.warn(&message, Some(&self.metadata_path(list, key)));
        }
    }

    fn warn_of_removed(&self, ctx: &Context, (list, key): (&str, &str), found: Option<String>) {
        if let Some(found) = found {
            let message = format!(
                "is `{found}`, which is left out, because these pods do not start together with the group; remove it"
            );
            ctx.warn(&message, Some(&self.metadata_path(list, key)));
        }
    }
}
