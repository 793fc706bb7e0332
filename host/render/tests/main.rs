//! The tests of this crate, as one program. A module is named for the guarantee that it proves.

mod additions_are_placed_by_rule;
mod common;
mod every_field_of_a_job_set_is_explained;
mod every_legal_order_gives_the_same_bytes;
mod gangs_ask_for_what_their_pods_will;
mod key_material_is_a_placeholder_until_it_is_applied;
mod missing_runtimes_take_little;
mod no_plugin_overwrites_another;
mod overrides_reach_their_containers;
mod patches_say_who_set_what;
mod plugins_that_meet_have_one_outcome;
mod pod_specs_are_edited_to_the_letter;
mod rendering_ends_in_time;
mod what_is_gone_or_new_is_explained;
mod what_is_left_out_is_missed_by_those_that_need_it;
