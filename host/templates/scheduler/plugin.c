// Lets a batch scheduler start the pods of a TrainJob together or not at all. The scheduler reads a Group, which has the TrainJob's name,
// and the label of the pods that belong to it.
//
// Nothing is freed, because each call gets a new instance of the plugin.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

// A string that is known when the plugin is compiled.
#define TEXT(text) (&(guest_string_t){(uint8_t *)(text), sizeof(text) - 1})

// The API of the scheduler's object.
#define API "scheduling.example.com/v1"
#define KIND "Group"
// The object has the TrainJob's name, without a suffix.
#define SUFFIX ""
// The label of the pods. Its value is the object's name.
#define LABEL "scheduling.example.com/group"
#define REPLICATED_JOBS "spec.template.spec.replicatedJobs"

// The pods of a TrainJob that start together.
typedef struct {
  // The nodes, and after them the pod sets that start once these are ready, such as an MPI launcher. The scheduler keeps resources for the
  // latter, but must not wait for them.
  pod_set_info_borrow_pod_set_t *pod_sets;
  guest_string_t *names;
  size_t members, length;
} gang_t;

static void *allocate(size_t size) {
  void *memory = malloc(size + 1);
  if (!memory) abort();
  return memory;
}

// Whether two strings are equal.
static bool equal(guest_string_t a, guest_string_t b) { return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0; }

// Whether a pod set waits for one of these, to have this status or, without one, any.
static bool waits_for(pod_set_info_borrow_pod_set_t pod_set, guest_string_t *names, size_t length, guest_string_t *status) {
  pod_set_info_list_dependency_t list;
  pod_set_info_method_pod_set_depends_on(pod_set, &list);
  for (size_t i = 0; i < list.len; i++) {
    if (status && !equal(list.ptr[i].status, *status)) continue;
    for (size_t j = 0; j < length; j++) {
      if (equal(list.ptr[i].pod_set, names[j])) return true;
    }
  }
  return false;
}

static void add(gang_t *gang, pod_set_info_borrow_pod_set_t pod_set) {
  gang->pod_sets[gang->length] = pod_set;
  pod_set_info_method_pod_set_name(pod_set, &gang->names[gang->length++]);
}

// Adds the nodes that wait for no other one, directly or not.
static void add_members(gang_t *gang, pod_set_info_list_own_pod_set_t nodes, pod_set_info_list_own_pod_set_t all) {
  // The nodes, and after them the pod sets that wait for one of them. A pod set waits only for those before it.
  guest_string_t *of_nodes = allocate((nodes.len + all.len) * sizeof *of_nodes);
  size_t first = 0;
  for (size_t i = 0; i < nodes.len; i++) {
    pod_set_info_borrow_pod_set_t node = pod_set_info_borrow_pod_set(nodes.ptr[i]);
    if (pod_set_info_method_pod_set_address_count(node) == 0) continue;
    pod_set_info_method_pod_set_name(node, &of_nodes[first++]);
  }
  size_t length = first;
  for (size_t i = 0; i < all.len; i++) {
    pod_set_info_borrow_pod_set_t pod_set = pod_set_info_borrow_pod_set(all.ptr[i]);
    if (waits_for(pod_set, of_nodes, length, NULL)) pod_set_info_method_pod_set_name(pod_set, &of_nodes[length++]);
  }
  for (size_t i = 0; i < nodes.len; i++) {
    pod_set_info_borrow_pod_set_t node = pod_set_info_borrow_pod_set(nodes.ptr[i]);
    if (pod_set_info_method_pod_set_address_count(node) == 0) continue;
    if (!waits_for(node, of_nodes, length, NULL)) add(gang, node);
  }
  gang->members = gang->length;
}

// Finds the gang, or returns false with a failure.
static bool find_gang(pod_set_info_borrow_info_t info, gang_t *gang, types_failure_t *failure) {
  pod_set_info_list_own_pod_set_t nodes, all;
  pod_set_info_method_info_nodes(info, &nodes);
  pod_set_info_method_info_pod_sets(info, &all);
  size_t most = nodes.len + all.len;
  *gang = (gang_t){allocate(most * sizeof *gang->pod_sets), allocate(most * sizeof *gang->names), 0, 0};
  add_members(gang, nodes, all);
  if (gang->members == 0) {
    // Failures are freed by the generated code, so they are copies.
    guest_string_dup(&failure->message,
                     "the group has no members, because no node with pods starts before the others; give a replicated job "
                     "the label `trainer.kubeflow.org/trainjob-ancestor-step: trainer`, or correct `replicas` and `dependsOn`");
    failure->field.is_some = true;
    guest_string_dup(&failure->field.val, REPLICATED_JOBS);
    return false;
  }
  for (size_t i = 0; i < all.len; i++) {
    pod_set_info_borrow_pod_set_t pod_set = pod_set_info_borrow_pod_set(all.ptr[i]);
    if (waits_for(pod_set, gang->names, gang->members, TEXT("Ready"))) add(gang, pod_set);
  }
  return true;
}

// Warns if the runtime or a patch sets the label: pods without the group's name would be missing in it, and it would never start.
static void warn_of_other_group(context_borrow_context_t ctx, pod_set_info_borrow_pod_set_t pod_set, guest_string_t group) {
  guest_string_t found, name, message, field;
  if (!pod_set_info_method_pod_set_pod_label(pod_set, TEXT(LABEL), &found) || equal(found, group)) return;
  pod_set_info_method_pod_set_name(pod_set, &name);
  size_t size = found.len + group.len + name.len + 300;
  char *text = allocate(size), *path = allocate(size);
  snprintf(text, size, "is `%.*s`, but the scheduler finds the pods of the group by `%.*s`, which replaces it; remove it",
           (int)found.len, (char *)found.ptr, (int)group.len, (char *)group.ptr);
  snprintf(path, size, REPLICATED_JOBS "[%.*s].template.spec.template.metadata.labels[" LABEL "]", (int)name.len,
           (char *)name.ptr);
  guest_string_set(&message, text);
  guest_string_set(&field, path);
  context_method_context_warn(ctx, &message, &field);
}

static types_borrow_document_t config(context_borrow_context_t ctx) {
  job_borrow_job_t job = job_borrow_job(context_method_context_job(ctx));
  return types_borrow_document(job_method_job_config(job));
}

bool exports_transform_transform(context_own_context_t context, types_failure_t *failure) {
  context_borrow_context_t ctx = context_borrow_context(context);
  gang_t gang;
  if (!find_gang(pod_set_info_borrow_info(context_method_context_info(ctx)), &gang, failure)) return false;
  objects_borrow_objects_t objects = objects_borrow_objects(context_method_context_objects(ctx));
  guest_string_t group;
  objects_method_objects_name(objects, TEXT(API), TEXT(KIND), TEXT(SUFFIX), NULL, &group);
  // The schema in manifest.json has a default.
  guest_string_t scheduler = {0};
  types_method_document_text(config(ctx), TEXT("/schedulerName"), &scheduler);
  for (size_t i = 0; i < gang.length; i++) {
    warn_of_other_group(ctx, gang.pod_sets[i], group);
    context_method_context_because(ctx, TEXT("the scheduler starts all pods of this group together"));
    pod_set_info_method_pod_set_set_pod_label(gang.pod_sets[i], TEXT(LABEL), &group);
    // An empty name means the cluster's default, like none.
    guest_string_t name;
    if (pod_set_info_method_pod_set_scheduler_name(gang.pod_sets[i], &name) && name.len > 0) continue;
    context_method_context_because(ctx, TEXT("`schedulerName` in the configuration of trainyard-template-scheduler"));
    pod_set_info_method_pod_set_set_scheduler_name(gang.pod_sets[i], &scheduler);
  }
  return true;
}

// Returns the resources of these pod sets as JSON. Their names and amounts have no characters that JSON escapes.
static char *resources(pod_set_info_borrow_info_t info, guest_list_string_t *names) {
  pod_set_info_list_quantity_t list;
  pod_set_info_method_info_gang_requests(info, names, &list);
  size_t size = 3;
  for (size_t i = 0; i < list.len; i++) size += list.ptr[i].resource.len + list.ptr[i].amount.len + 6;
  char *json = allocate(size), *end = json;
  *end++ = '{';
  for (size_t i = 0; i < list.len; i++) {
    guest_string_t name = list.ptr[i].resource, amount = list.ptr[i].amount;
    end += sprintf(end, "%s\"%.*s\":\"%.*s\"", i ? "," : "", (int)name.len, (char *)name.ptr, (int)amount.len,
                   (char *)amount.ptr);
  }
  strcpy(end, "}");
  return json;
}

bool exports_build_build(context_own_context_t context, types_failure_t *failure) {
  context_borrow_context_t ctx = context_borrow_context(context);
  pod_set_info_borrow_info_t info = pod_set_info_borrow_info(context_method_context_info(ctx));
  gang_t gang;
  if (!find_gang(info, &gang, failure)) return false;
  guest_list_string_t members = {gang.names, gang.members}, group = {gang.names, gang.length};
  // The host returns the queue as JSON, so that it needs no escaping here.
  guest_string_t queue = {0};
  bool has_queue = types_method_document_json(config(ctx), TEXT("/queue"), &queue);
  char *requests = resources(info, &group);
  size_t size = strlen(requests) + queue.len + 100;
  char *json = allocate(size);
  snprintf(json, size, "{\"spec\":{\"minMembers\":%" PRIu32 ",\"resources\":%s%s%.*s}}",
           pod_set_info_method_info_gang_members(info, &members), requests, has_queue ? ",\"queue\":" : "",
           (int)queue.len, (char *)queue.ptr);
  guest_string_t body;
  guest_string_set(&body, json);

  objects_borrow_objects_t objects = objects_borrow_objects(context_method_context_objects(ctx));
  objects_borrow_object_t object = objects_borrow_object(
      objects_method_objects_emit(objects, TEXT(API), TEXT(KIND), TEXT(SUFFIX), NULL));
  // A scheduler that has counted the pods must not see another number.
  objects_method_object_set_apply(object, TEXT("while-suspended"));
  objects_method_object_report_while(object, TEXT("phase/Pending"), TEXT("the group waits in its queue"));
  objects_method_object_set_body(object, &body);
  return true;
}
