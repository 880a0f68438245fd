%% The same measurements as `ours.rs`, on the real OTP supervisor. Prints one line a figure: NAME VALUE.
-module(bench).
-behaviour(supervisor).
-export([main/1, init/1, start/1, child/1]).

main(["quick", Starts, Kills, Idle, Storm]) ->
    process_flag(trap_exit, true),
    say("start", starts(list_to_integer(Starts))),
    {Quick, Slow} = {list_to_integer(Kills), list_to_integer(Idle)},
    say("kill", restarts(Quick, 0, kill)),
    say("panic", restarts(Quick, 0, panic)),
    say("kill_idle", restarts(Slow, 2, kill)),
    say("panic_idle", restarts(Slow, 2, panic)),
    say("storm", storm(list_to_integer(Storm)));
main(["memory", Many]) ->
    process_flag(trap_exit, true),
    Sup = sup(),
    N = list_to_integer(Many),
    erlang:garbage_collect(),
    Before = rss(),
    [start_one(Sup) || _ <- lists:seq(1, N)],
    drain(N),
    say("memory", (rss() - Before) / N).

say(Name, Value) -> io:format("~s ~p~n", [Name, float(Value)]).

sup() ->
    {ok, Sup} = supervisor:start_link(?MODULE, self()),
    Sup.

init(Driver) ->
    Child = #{id => child, start => {?MODULE, start, [Driver]}, shutdown => brutal_kill},
    {ok, {#{strategy => simple_one_for_one, intensity => 100000000, period => 3600}, [Child]}}.

%% A child is acknowledged when it runs, as a gen_server is.
start(Driver) -> proc_lib:start_link(?MODULE, child, [Driver]).

child(Driver) ->
    proc_lib:init_ack({ok, self()}),
    Driver ! {up, self()},
    receive panic -> erlang:error(boom) end.

start_one(Sup) -> {ok, _} = supervisor:start_child(Sup, []).

drain(0) -> ok;
drain(N) -> receive {up, _} -> drain(N - 1) end.

stop(Sup) ->
    unlink(Sup),
    Monitor = monitor(process, Sup),
    exit(Sup, kill),
    receive {'DOWN', Monitor, _, _, _} -> ok end,
    timer:sleep(5).

now_ns() -> erlang:monotonic_time(nanosecond).

%% Children a second.
starts(N) ->
    Sup = sup(),
    Began = now_ns(),
    [start_one(Sup) || _ <- lists:seq(1, N)],
    drain(N),
    Took = now_ns() - Began,
    stop(Sup),
    N * 1.0e9 / Took.

%% The median of kill to running again, in microseconds. A supervisor searches all its restarts within the period at every
%% restart, so that after a few hundred each has a fresh one; the period is over with none of them.
-define(A_SUPERVISOR, 200).

restarts(N, Pause, How) ->
    logger:set_primary_config(level, none),
    Rounds = max(1, N div ?A_SUPERVISOR),
    Times = lists:append([round(min(N, ?A_SUPERVISOR), Pause, How) || _ <- lists:seq(1, Rounds)]),
    lists:nth(length(Times) div 2 + 1, lists:sort(Times)) / 1000.

round(N, Pause, How) ->
    Sup = sup(),
    start_one(Sup),
    First = receive {up, Pid} -> Pid end,
    Times = restarts(N, Pause, How, First, []),
    stop(Sup),
    Times.

restarts(0, _, _, _, Times) -> Times;
restarts(N, Pause, How, Pid, Times) ->
    if Pause > 0 -> timer:sleep(Pause); true -> ok end,
    Began = now_ns(),
    case How of
        kill -> exit(Pid, kill);
        panic -> Pid ! panic
    end,
    receive {up, Next} -> restarts(N - 1, Pause, How, Next, [now_ns() - Began | Times]) end.

%% Milliseconds until all run again.
storm(N) ->
    Sup = sup(),
    [start_one(Sup) || _ <- lists:seq(1, N)],
    Pids = [receive {up, Pid} -> Pid end || _ <- lists:seq(1, N)],
    Began = now_ns(),
    [exit(Pid, kill) || Pid <- Pids],
    drain(N),
    Took = now_ns() - Began,
    stop(Sup),
    Took / 1.0e6.

rss() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = string:split(Text, " ", all),
    list_to_integer(binary_to_list(Pages)) * 4096.
