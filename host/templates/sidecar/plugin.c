// Runs a sidecar in the pods of the nodes, which reads what training writes to a shared volume.
//
// Nothing is freed, because each call gets a new instance of the plugin.

#include <stdio.h>

#include "guest.h"

// A string that is known when the plugin is compiled.
#define TEXT(text) (&(guest_string_t){(uint8_t *)(text), sizeof(text) - 1})

// The volume, and the sidecar itself.
#define NAME "sidecar"
// Where both containers mount the volume.
#define PATH "/var/run/sidecar"

static void default_mount(pod_set_info_borrow_container_t container, bool read_only) {
  types_mount_t mount = {.volume = *TEXT(NAME), .path = *TEXT(PATH), .read_only = read_only};
  pod_set_info_method_container_default_mount(container, &mount);
}

// Refuses a volume of the runtime with the name of the plugin's, which the host would not replace.
static bool reserve_volume(pod_set_info_borrow_pod_set_t pod_set, types_failure_t *failure) {
  types_own_document_t volume;
  if (!pod_set_info_method_pod_set_volume(pod_set, TEXT(NAME), &volume)) return true;
  guest_string_t name;
  pod_set_info_method_pod_set_name(pod_set, &name);
  char field[300];
  snprintf(field, sizeof field,
           "spec.template.spec.replicatedJobs[%.*s].template.spec.template.spec.volumes[" NAME "].name", (int)name.len,
           (char *)name.ptr);
  // Failures are freed by the generated code, so they are copies.
  guest_string_dup(&failure->message, "the plugin adds a volume with the name `" NAME "`; rename the runtime's volume");
  failure->field.is_some = true;
  guest_string_dup(&failure->field.val, field);
  return false;
}

bool exports_transform_transform(context_own_context_t context, types_failure_t *failure) {
  context_borrow_context_t ctx = context_borrow_context(context);
  job_borrow_job_t job = job_borrow_job(context_method_context_job(ctx));
  types_borrow_document_t config = types_borrow_document(job_method_job_config(job));
  // The schema in manifest.json requires it.
  guest_string_t image = {0};
  types_method_document_text(config, TEXT("/image"), &image);

  pod_set_info_list_own_pod_set_t nodes;
  pod_set_info_method_info_nodes(pod_set_info_borrow_info(context_method_context_info(ctx)), &nodes);
  for (size_t i = 0; i < nodes.len; i++) {
    pod_set_info_borrow_pod_set_t pod_set = pod_set_info_borrow_pod_set(nodes.ptr[i]);
    pod_set_info_own_container_t node;
    if (!pod_set_info_method_pod_set_container(pod_set, TEXT("node"), &node)) continue;
    if (!reserve_volume(pod_set, failure)) return false;
    context_method_context_because(ctx, TEXT("training shares this volume with the sidecar"));
    pod_set_info_method_pod_set_put_empty_dir(pod_set, TEXT(NAME), NULL, NULL);
    default_mount(pod_set_info_borrow_container(node), false);
    context_method_context_because(ctx, TEXT("the image in the configuration of trainyard-template-sidecar"));
    pod_set_info_borrow_container_t sidecar = pod_set_info_borrow_container(
        pod_set_info_method_pod_set_add_init_container(pod_set, TEXT(NAME), &image));
    // An init container that is always restarted starts before the others, and ends after them.
    pod_set_info_method_container_set_restart_policy(sidecar, TEXT("Always"));
    default_mount(sidecar, true);
  }
  return true;
}
