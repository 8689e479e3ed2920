//! The list of peers that misbehave. Each entry is a test that meets one of them, or one kind of them; the
//! guide says how many there are, and is checked here.

/// Servers our client meets, by the file of the test.
const SERVERS: &[(&str, &str, &[&str])] = &[
    (
        "hostile.rs",
        include_str!("hostile.rs"),
        &[
            "death_before_the_greeting",
            "silence_at_the_start",
            "a_greeting_in_an_unknown_revision",
            "a_malformed_handshake_is_an_error",
            "a_server_that_refuses",
            "death_in_the_middle_of_a_call",
            "death_in_the_middle_of_a_line",
            "an_answer_just_before_death_still_counts",
            "output_closed_while_the_process_lives",
            "silence_during_a_call_ends_the_server",
            "a_slow_server_that_still_answers_is_left_alone",
            "a_line_without_end",
            "a_line_that_is_too_long",
            "json_as_deep_as_a_well",
            "json_of_very_many_values",
            "garbage_between_messages",
            "nothing_but_garbage",
            "batches_are_not_taken",
            "answers_under_wrong_ids",
            "the_same_answer_twice",
            "a_result_and_an_error_at_once",
            "neither_a_result_nor_an_error",
            "a_flood_of_notifications",
            "progress_without_end_is_cut_short",
            "a_flood_of_requests_that_never_reads_the_answers",
            "a_server_that_asks_for_what_is_not_offered",
            "a_server_that_never_reads",
            "lists_that_never_end",
            "more_tools_than_anybody_needs",
            "patterns_of_many_tools_share_one_limit",
            "bad_tools_are_left_out_and_named",
            "a_result_that_breaks_its_own_schema",
            "children_and_daemons_end_with_their_server",
            "a_child_that_holds_the_pipe_open_after_its_parent_died",
            "a_server_that_ignores_every_request_to_end",
            "stderr_is_told_line_by_line_however_much_there_is",
            "a_server_that_keeps_dying_is_started_again_with_growing_pauses",
            "a_flood_from_one_server_does_not_hold_up_another",
            "a_list_of_slow_pages_has_the_time_of_one_request",
            "a_call_does_not_wait_for_a_start_longer_than_it_may_take",
            "a_server_that_hangs_is_not_waited_for_at_every_turn",
        ],
    ),
    (
        "hostile_content.rs",
        include_str!("hostile_content.rs"),
        &[
            "a_greeting_sent_twice_counts_once",
            "a_greeting_of_the_wrong_kinds",
            "an_answer_before_the_question",
            "the_same_key_twice_in_one_message",
            "requests_under_our_own_ids",
            "text_that_is_not_utf8",
            "bytes_of_zero_and_lines_of_returns",
            "a_result_of_very_many_blocks_is_cut",
            "the_bytes_of_a_broken_picture_are_an_error",
            "links_are_told_and_never_followed",
            "words_that_look_like_ours_stay_words",
            "an_error_longer_than_a_book",
            "a_malformed_error_object_fails_the_call",
            "progress_backwards_sideways_and_of_others",
            "notifications_nobody_knows",
            "a_list_that_changes_without_end",
            "names_and_descriptions_without_measure",
            "schemas_that_lead_in_circles",
            "patterns_of_exponential_time_are_bounded",
            "questions_to_people_without_end",
            "a_server_that_stops_reading",
            "revisions_by_the_thousand",
            "what_it_writes_for_people_cannot_move_the_cursor_through_the_log",
            "resources_and_prompts_of_the_wrong_kinds",
            "entries_with_null_and_fractions_cost_no_list",
        ],
    ),
    (
        "http_client.rs",
        include_str!("http_client.rs"),
        &[
            "redirects_are_not_followed",
            "an_answer_without_end_is_cut_off",
            "an_event_without_end_is_cut_off",
            "an_answer_to_something_else_is_no_answer",
            "a_page_is_no_answer",
            "garbage_is_no_answer",
            "a_stream_that_ends_early_is_an_error",
            "a_server_that_always_asks_for_more_is_given_up",
            "a_server_that_asks_for_what_is_not_offered_gets_nothing",
            "a_body_that_breaks_off_is_an_error",
            "what_is_packed_is_not_unpacked",
            "no_http_at_all_is_an_error",
            "headers_without_end_are_cut_off",
            "events_of_others_and_comments_are_passed_over",
            "a_session_id_that_is_no_header_is_not_sent_back",
            "descriptions_of_other_servers_are_not_believed",
            "authorization_servers_that_are_not_safe_are_not_used",
            "an_authorization_server_must_be_who_it_says",
        ],
    ),
    (
        "http_client_faults.rs",
        include_str!("http_client_faults.rs"),
        &[
            "a_server_that_repeats_the_token_does_not_make_us_repeat_it",
            "a_session_that_is_lost_is_begun_again_and_the_call_made_again",
            "a_call_that_may_have_been_begun_is_not_made_again",
            "a_server_that_forgets_every_session_is_not_asked_for_ever",
            "a_list_of_very_large_pages_is_given_up",
            "a_server_that_does_not_know_the_newest_question_is_greeted_in_the_older_way",
        ],
    ),
    (
        "http_client_streams.rs",
        include_str!("http_client_streams.rs"),
        &[
            "a_server_cannot_have_us_knock_without_end",
            "a_call_that_does_not_get_on_is_given_up",
            "tools_that_could_not_be_listed_are_listed_later",
            "the_older_transport_does_not_wait_for_ever",
            "the_older_transport_notices_silence",
            "a_gateway_that_is_busy_once_does_not_make_us_deaf",
        ],
    ),
    (
        "token_refresh.rs",
        include_str!("token_refresh.rs"),
        &["a_server_that_refuses_every_token_is_not_asked_for_ever", "a_malformed_answer_keeps_the_token"],
    ),
    (
        "pinning.rs",
        include_str!("pinning.rs"),
        &[
            "a_tool_that_changes_is_suspended_until_it_is_approved_again",
            "only_what_the_lock_approved_is_offered",
        ],
    ),
    ("pipes.rs", include_str!("pipes.rs"), &["a_server_cannot_talk_its_way_past_a_policy"]),
];

/// Clients our server meets.
const CLIENTS: &[(&str, &str, &[&str])] = &[
    (
        "http.rs",
        include_str!("http.rs"),
        &[
            "other_host_names_and_origins_are_refused",
            "two_hosts_or_none_are_refused",
            "a_token_is_needed_and_a_foreign_one_is_worth_nothing",
            "sessions_that_do_not_exist_are_not_found",
            "a_session_that_was_ended_is_gone",
            "events_of_streams_that_do_not_exist_are_refused",
            "a_body_that_is_too_large_is_refused_before_it_is_read",
            "heads_without_end_are_refused",
            "slow_clients_do_not_hold_up_others",
            "bodies_that_are_no_messages_say_why",
            "headers_that_contradict_the_body_are_refused",
            "a_forged_or_borrowed_state_is_refused",
            "who_hangs_up_cancels_the_call",
            "long_calls_go_on_as_tasks_that_only_their_client_can_look_at_and_stop",
        ],
    ),
    (
        "http_bounds.rs",
        include_str!("http_bounds.rs"),
        &[
            "one_address_cannot_take_every_connection",
            "who_does_not_read_what_it_asked_for_is_sent_away",
            "a_client_has_so_many_calls_at_once_in_whichever_era",
            "who_only_listens_does_not_hold_up_the_end",
            "who_never_sends_a_head_is_sent_away",
            "what_is_kept_for_a_client_is_bounded",
            "nobody_is_kept_out_by_sessions_that_others_began",
        ],
    ),
    (
        "resource_server.rs",
        include_str!("resource_server.rs"),
        &["only_tokens_made_for_this_server_are_taken"],
    ),
    (
        "wire.rs",
        include_str!("wire.rs"),
        &[
            "wrong_requests_get_the_codes_of_the_protocol",
            "lines_that_are_no_messages_are_answered_and_survived",
            "an_id_in_use_is_refused_and_a_cancelled_call_gets_no_answer",
            "calls_under_way_are_answered_after_the_input_ends_even_from_a_partial_line",
            "a_call_that_never_ends_does_not_keep_the_server_alive",
        ],
    ),
];

#[test]
fn every_peer_on_the_list_is_met_and_the_guide_counts_them() {
    let mut seen = std::collections::BTreeSet::new();
    let mut count = |peers: &[(&str, &str, &'static [&'static str])]| {
        let mut count = 0;
        for (file, source, tests) in peers {
            for test in *tests {
                let is_test = source.contains(&format!("#[tokio::test]\nasync fn {test}() {{"));
                assert!(is_test, "{file} has no test `{test}`");
                assert!(seen.insert(*test), "`{test}` is listed twice");
                count += 1;
            }
        }
        count
    };
    let (servers, clients) = (count(SERVERS), count(CLIENTS));
    assert!(servers + clients >= 60);
    let wanted = format!(
        "{} peers that misbehave are met: {servers} servers and {clients} clients",
        servers + clients
    );
    let guide = include_str!("../../../../docs/guide/mcp.md");
    let guide = guide.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(guide.contains(&wanted), "docs/guide/mcp.md must say: {wanted}");
}
