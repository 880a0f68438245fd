%% Runs supervision scenarios on the real OTP supervisor and writes down what happened.
%%
%% erl -noshell -pa DIR -eval 'judge:main("SCENARIOS", "TRACES", AT_ONCE)'
%%
%% SCENARIOS holds one term a scenario, as `scenario.rs` prints them. Nothing here depends on how fast it runs: what is to
%% happen at the same time is put into the mailbox of a suspended supervisor, and what is to happen in the middle of a start
%% or a stop is done by the start function or by the child that stops. A step is over when every supervisor has answered,
%% every process that lives is in the tree, and nothing has happened since.
-module(judge).
-behaviour(supervisor).
-export([main/3, init/1, start/4]).

%% A wait is well over every short period (2 s), whose clock OTP counts in whole seconds.
-define(WAIT, 3300).
%% When no scenario has ended for so long, none will.
-define(STUCK, 60000).
%% All that happens between two waits must be well within it.
-define(PHASE, 1800).

main(In, Out, AtOnce) ->
    logger:set_primary_config(level, none),
    {ok, Scenarios} = file:consult(In),
    {ok, File} = file:open(Out, [write, raw, delayed_write]),
    all(Scenarios, #{}, AtOnce, File),
    ok = file:close(File).

all([], Running, _, _) when Running =:= #{} -> ok;
all([Next | Rest], Running, AtOnce, File) when map_size(Running) < AtOnce ->
    {Id, _, _} = Next,
    Self = self(),
    spawn_link(fun() -> Self ! {done, Id, scenario(Next)} end),
    all(Rest, Running#{Id => now}, AtOnce, File);
all(Scenarios, Running, AtOnce, File) ->
    receive
        {done, Id, Text} ->
            ok = file:write(File, Text),
            all(Scenarios, maps:remove(Id, Running), AtOnce, File)
    after ?STUCK ->
        io:format("these scenarios do not end: ~w~n", [maps:keys(Running)]),
        halt(1)
    end.

%% One scenario

scenario({Id, Sup, Steps}) ->
    process_flag(trap_exit, true),
    State = ets:new(state, [public, set]),
    Events = ets:new(events, [public, ordered_set]),
    Watch = spawn_link(fun() -> watch(Events, #{}) end),
    Ctx = {State, Events, Watch},
    put(slow, false),
    phase(),
    note(Ctx, step),
    Root = start(Ctx, {"", ""}, {supervisor, {[], ok}, Sup}, "root"),
    note(Ctx, {answer, answer(Ctx, Root)}),
    settle(Ctx, "root"),
    lists:foreach(fun(Step) ->
                          note(Ctx, step),
                          step(Ctx, Step),
                          settle(Ctx, "root")
                  end, Steps),
    phase_over(),
    Lines = [line(Event) || {_, Event} <- ets:tab2list(Events)],
    unlink(Watch),
    exit(Watch, kill),
    [io_lib:format("#~w~n", [Id]), Lines, case get(slow) of true -> "!slow\n"; false -> [] end].

line(step) -> "=\n";
line({start, Full, Act}) -> ["+", Full, " ", io_lib:format("~w", [element(1, tag(Act))]), "\n"];
line({stop, Full}) -> ["-", Full, "\n"];
line({exit, Full, Reason}) -> ["x", Full, " ", Reason, "\n"];
line({answer, Text}) -> ["?", Text, "\n"];
line({shape, Text}) -> [Text, "\n"].

tag(Act) when is_atom(Act) -> {Act};
tag(Act) -> Act.

%% Stamps of this kind are ordered as their causes are.
note({_, Events, _}, Event) -> ets:insert(Events, {erlang:unique_integer([monotonic]), Event}).

phase() -> put(phase, erlang:monotonic_time(millisecond)).
phase_over() ->
    case erlang:monotonic_time(millisecond) - get(phase) > ?PHASE of
        true -> put(slow, true);
        false -> ok
    end.

watch(Events, Alive) ->
    receive
        {watch, Pid, Full} ->
            Ref = monitor(process, Pid),
            Pid ! {watched, self()},
            watch(Events, Alive#{Ref => {Pid, Full}});
        {'DOWN', Ref, process, _, Reason} ->
            {{_, Full}, Rest} = maps:take(Ref, Alive),
            note({none, Events, none}, {exit, Full, class(Reason)}),
            watch(Events, Rest);
        {alive, From} ->
            From ! {alive, lists:sort([Pid || {Pid, _} <- maps:values(Alive)])},
            watch(Events, Alive)
    end.

watched({_, _, Watch}, Full) ->
    Watch ! {watch, self(), Full},
    receive {watched, Watch} -> ok end.

class(normal) -> "normal";
class(shutdown) -> "shutdown";
class({shutdown, _}) -> "shutdown_for";
class(killed) -> "killed";
class(_) -> "crash".

%% Children

start(Ctx, {ParentPlain, ParentFull}, Kind, Name) ->
    Plain = path(ParentPlain, Name),
    {State, _, _} = Ctx,
    Attempt = ets:update_counter(State, {attempt, Plain}, 1, {{attempt, Plain}, 0}),
    Full = path(ParentFull, Name) ++ "#" ++ integer_to_list(Attempt),
    Act = act(element(2, Kind), Attempt),
    note(Ctx, {start, Full, Act}),
    case Act of
        ok -> run(Ctx, Kind, Plain, Full, ParentPlain);
        fail -> {error, refused};
        ignore -> ignore;
        {kill, Sibling} ->
            kill_sibling(Ctx, ParentPlain, Sibling, self()),
            run(Ctx, Kind, Plain, Full, ParentPlain);
        {die, Reason} ->
            {ok, Pid} = run(Ctx, Kind, Plain, Full, ParentPlain),
            Pid ! {die, Reason},
            requeue(Pid),
            {ok, Pid}
    end.

path("", Name) -> Name;
path(Parent, Name) -> Parent ++ "/" ++ Name.

act({First, Rest}, Attempt) when Attempt > length(First) -> Rest;
act({First, _}, Attempt) -> lists:nth(Attempt, First).

run(Ctx, {worker, _, OnStop}, Plain, Full, ParentPlain) ->
    Parent = self(),
    Pid = spawn_link(fun() ->
                             process_flag(trap_exit, true),
                             watched(Ctx, Full),
                             Parent ! {self(), ready},
                             worker(Ctx, Parent, ParentPlain, Full, OnStop)
                     end),
    receive {Pid, ready} -> ok end,
    known(Ctx, Plain, Full, Pid, Parent),
    ets:insert(element(1, Ctx), {{worker, Pid}}),
    {ok, Pid};
run(Ctx, {supervisor, _, Sup}, Plain, Full, _) ->
    supervisor:start_link(?MODULE, {Ctx, Plain, Full, self(), Sup}).

known({State, _, _}, Plain, Full, Pid, Parent) ->
    ets:insert(State, [{{pid, Plain}, Pid}, {{full, Plain}, Full}, {{name, Pid}, Full}, {{child, Parent, Plain}, Pid}]).

worker(Ctx, Parent, ParentPlain, Full, OnStop) ->
    receive
        {die, Reason} -> exit(Reason);
        %% Nobody knows whether it is killed before it could say that it heard.
        {'EXIT', Parent, shutdown} when OnStop =:= deaf -> deaf(Parent);
        {'EXIT', Parent, shutdown} ->
            note(Ctx, {stop, Full}),
            case OnStop of
                obey -> exit(shutdown);
                {die, Reason} -> exit(Reason);
                {kill, Sibling} ->
                    kill_sibling(Ctx, ParentPlain, Sibling, Parent),
                    exit(shutdown)
            end;
        {'EXIT', Parent, Reason} -> exit(Reason);
        _ -> worker(Ctx, Parent, ParentPlain, Full, OnStop)
    end.

deaf(Parent) ->
    receive
        {'EXIT', Parent, Reason} when Reason =/= shutdown -> exit(Reason);
        _ -> deaf(Parent)
    end.

%% Kills a sibling and waits until its exit is in the mailbox of their supervisor.
kill_sibling({State, _, _}, ParentPlain, Sibling, Supervisor) ->
    %% Under the same incarnation of the supervisor: the children of another are nobody's siblings.
    case ets:lookup(State, {child, Supervisor, path(ParentPlain, Sibling)}) of
        [{_, Pid}] when Pid =/= self() ->
            case is_process_alive(Pid) of
                true -> kill_child(Supervisor, Pid);
                false -> ok
            end;
        _ -> ok
    end.

kill_child(Supervisor, Pid) ->
    exit(Pid, kill),
    case Supervisor =:= self() of
        true -> requeue(Pid);
        false -> until(fun() -> has_exit(Supervisor, Pid) end)
    end.

requeue(Pid) -> receive {'EXIT', Pid, Reason} -> self() ! {'EXIT', Pid, Reason} end.

has_exit(Supervisor, Pid) ->
    case process_info(Supervisor, messages) of
        undefined -> true;
        {messages, Messages} -> lists:any(fun({'EXIT', P, _}) -> P =:= Pid; (_) -> false end, Messages)
    end.

until(Done) ->
    case Done() of
        true -> ok;
        false -> timer:sleep(1), until(Done)
    end.

living({State, _, _}, Plain) ->
    case ets:lookup(State, {pid, Plain}) of
        [{_, Pid}] -> case is_process_alive(Pid) of true -> {ok, Pid}; false -> none end;
        [] -> none
    end.

supervising(Ctx, Plain) ->
    case living(Ctx, Plain) of
        {ok, Pid} -> case ets:member(element(1, Ctx), {worker, Pid}) of true -> none; false -> {ok, Pid} end;
        none -> none
    end.

init({Ctx, Plain, Full, Parent, {sup, Strategy, Intensity, Period, Auto, Children}}) ->
    watched(Ctx, Full),
    known(Ctx, Plain, Full, self(), Parent),
    Flags = #{strategy => Strategy, intensity => Intensity, period => Period, auto_shutdown => Auto},
    Specs = case Strategy of
                simple_one_for_one ->
                    [{_, Restart, Significant, Shutdown, Kind}] = Children,
                    Start = {?MODULE, start, [Ctx, {Plain, Full}, Kind]},
                    [spec(any, Start, Restart, Significant, Shutdown, Kind)];
                _ -> [child(Ctx, {Plain, Full}, Child) || Child <- Children]
            end,
    {ok, {Flags, Specs}}.

child(Ctx, Parent, {Name, Restart, Significant, Shutdown, Kind}) ->
    spec(Name, {?MODULE, start, [Ctx, Parent, Kind, Name]}, Restart, Significant, Shutdown, Kind).

spec(Id, Start, Restart, Significant, Shutdown, Kind) ->
    #{id => Id, start => Start, restart => Restart, significant => Significant, shutdown => Shutdown,
      type => element(1, Kind)}.

%% Steps

step(Ctx, {exit, Path, Reason}) ->
    case living(Ctx, Path) of
        {ok, Pid} ->
            case can_leave(Ctx, Pid, Reason) of
                true ->
                    leave(Pid, Reason),
                    until(fun() -> not is_process_alive(Pid) end);
                false -> ok
            end;
        none -> ok
    end;
step(Ctx, {stranger, Path, Reason}) ->
    case living(Ctx, Path) of
        %% Not this process, which is the root's parent.
        {ok, Pid} ->
            {Stranger, Ref} = spawn_monitor(fun() -> exit(Pid, Reason) end),
            receive {'DOWN', Ref, process, Stranger, _} -> ok end;
        none -> ok
    end;
step(Ctx, {ask, Path, Request}) ->
    note(Ctx, {answer, ask(Ctx, Path, supervising(Ctx, Path), Request)});
step(Ctx, {batch, Path, Subs}) ->
    case supervising(Ctx, Path) of
        {ok, Sup} -> batch(Ctx, Path, Sup, Subs);
        none -> [note(Ctx, {answer, "gone"}) || {ask, _} <- Subs]
    end;
step(_, wait) ->
    phase_over(),
    timer:sleep(?WAIT),
    phase();
step(Ctx, stop) ->
    case living(Ctx, "root") of
        {ok, Root} -> exit(Root, shutdown);
        none -> ok
    end.

%% A supervisor does not exit by itself.
can_leave(_, _, kill) -> true;
can_leave({State, _, _}, Pid, _) -> ets:member(State, {worker, Pid}).

leave(Pid, kill) -> exit(Pid, kill);
leave(Pid, Reason) -> Pid ! {die, Reason}.

%% Everything of a batch is in the mailbox, in order, before the supervisor sees the first of it.
batch(Ctx, Path, Sup, Subs) ->
    true = erlang:suspend_process(Sup),
    Callers = lists:append([sub(Ctx, Path, Sup, Sub) || Sub <- Subs]),
    erlang:resume_process(Sup),
    [receive {Caller, Text} -> note(Ctx, {answer, Text}) end || Caller <- Callers].

sub(Ctx, _, Sup, {exit, Path, Reason}) ->
    case living(Ctx, Path) of
        {ok, Pid} -> [queued(Sup, fun() -> leave(Pid, Reason) end) || can_leave(Ctx, Pid, Reason)], [];
        none -> []
    end;
sub(_, _, Sup, stop) ->
    queued(Sup, fun() -> exit(Sup, shutdown) end),
    [];
sub(Ctx, Path, Sup, {ask, Request}) ->
    Self = self(),
    Call = prepare(Ctx, Path, Sup, Request),
    Start = fun() -> spawn_link(fun() -> Self ! {self(), asked(Ctx, Call)} end) end,
    [queued(Sup, Start)].

queued(Sup, Do) ->
    {message_queue_len, Before} = process_info(Sup, message_queue_len),
    Result = Do(),
    until(fun() -> process_info(Sup, message_queue_len) > {message_queue_len, Before} end),
    Result.

ask(_, _, none, _) -> "gone";
ask(Ctx, Path, {ok, Sup}, Request) -> asked(Ctx, prepare(Ctx, Path, Sup, Request)).

asked(Ctx, Call) ->
    try answer(Ctx, Call()) catch exit:_ -> "gone" end.

prepare(Ctx = {State, _, _}, Path, Sup, Request) ->
    case Request of
        {start, Child} ->
            [{_, Full}] = ets:lookup(State, {full, Path}),
            Spec = child(Ctx, {Path, Full}, Child),
            fun() -> supervisor:start_child(Sup, Spec) end;
        {start_dynamic, Name} -> fun() -> supervisor:start_child(Sup, [Name]) end;
        {terminate, Name} -> fun() -> supervisor:terminate_child(Sup, Name) end;
        {terminate_dynamic, Name} ->
            case ets:lookup(State, {pid, path(Path, Name)}) of
                [{_, Pid}] -> fun() -> supervisor:terminate_child(Sup, Pid) end;
                %% What is never there needs no end; but the supervisor must be there to say so.
                [] -> fun() -> supervisor:which_children(Sup), ok end
            end;
        {delete, Name} -> fun() -> supervisor:delete_child(Sup, Name) end;
        {restart, Name} -> fun() -> supervisor:restart_child(Sup, Name) end;
        which -> fun() -> {which, supervisor:which_children(Sup)} end;
        count -> fun() -> {count, supervisor:count_children(Sup)} end
    end.

answer(_, {ok, undefined}) -> "ignored";
answer(_, {ok, Pid}) when is_pid(Pid) -> "started";
answer(_, ok) -> "ok";
answer(_, ignore) -> "ignored";
answer(_, {error, {already_started, _}}) -> "already_started";
answer(_, {error, {bad_combination, _}}) -> "bad_combination";
answer(_, {error, Word}) when Word =:= already_present; Word =:= not_found; Word =:= running; Word =:= restarting;
                              Word =:= simple_one_for_one -> atom_to_list(Word);
answer(_, {error, _}) -> "start_failed";
answer(Ctx, {which, Children}) -> ["which", which(Ctx, Children)];
answer(_, {count, Counts}) -> ["count", count(Counts)].

%% Dynamic children have no order.
which({State, _, _}, Children) ->
    Show = fun({Id, restarting, _, _}) -> [name(Id), "restarting"];
              ({Id, undefined, _, _}) -> [name(Id), "undefined"];
              ({Id, Pid, _, _}) ->
                   [{_, Full}] = ets:lookup(State, {name, Pid}),
                   [name(Id), Full]
           end,
    Shown = [lists:flatten(Show(Child)) || Child <- Children],
    Ordered = case Children of
                  [{undefined, _, _, _} | _] -> lists:sort(Shown);
                  _ -> Shown
              end,
    [[" ", One] || One <- Ordered].

name(undefined) -> "";
name(Id) -> [Id, "="].

count(Counts) -> [[" ", integer_to_list(N)] || {_, N} <- Counts].

%% Quiet

settle(Ctx, Root) ->
    settle(Ctx, Root, none),
    lists:foreach(fun(Text) -> note(Ctx, {shape, Text}) end, shape(Ctx, Root)).

settle(Ctx = {_, Events, Watch}, Root, Before) ->
    Tree = walk(Ctx, Root),
    Watch ! {alive, self()},
    Alive = receive {alive, Pids} -> Pids end,
    Now = {Tree, ets:info(Events, size)},
    case Tree of
        {ok, Sorted} when Sorted =:= Alive, Now =:= Before -> ok;
        _ ->
            timer:sleep(1),
            settle(Ctx, Root, Now)
    end.

walk(Ctx, Root) ->
    case living(Ctx, Root) of
        none -> {ok, []};
        {ok, Pid} ->
            try {ok, lists:sort(below(Pid))}
            catch _:_ -> restless
            end
    end.

below(Sup) ->
    Children = supervisor:which_children(Sup),
    {message_queue_len, 0} = process_info(Sup, message_queue_len),
    [Sup | lists:append([inner(Pid, Type) || {_, Pid, Type, _} <- Children, Pid =/= undefined])].

inner(Pid, Type) ->
    true = is_process_alive(Pid),
    case Type of
        worker -> [Pid];
        supervisor -> below(Pid)
    end.

shape(Ctx, Root) ->
    case living(Ctx, Root) of
        none -> [];
        {ok, Pid} -> shape_of(Ctx, Pid)
    end.

shape_of(Ctx = {State, _, _}, Sup) ->
    [{_, Full}] = ets:lookup(State, {name, Sup}),
    Children = supervisor:which_children(Sup),
    Own = [["W", Full, which(Ctx, Children)], ["C", Full, count(supervisor:count_children(Sup))]],
    Own ++ lists:append([shape_of(Ctx, Pid) || {_, Pid, supervisor, _} <- by_id(Children), is_pid(Pid)]).

%% Below a dynamic supervisor the order of the lines is settled by whoever compares.
by_id(Children) -> Children.
