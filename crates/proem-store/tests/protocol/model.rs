//! A model of clients that look up, build, store and read back, in every order, with crashes between any two steps.

use stateright::{Checker, Model, Property};

/// The goal of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Job {
    /// Gets the prompt of the conversation, from any builder.
    FirstTurn,
    /// Opens another epoch: a rebuild, or the end of a compaction.
    Rebuild,
}

/// The rule by which a prompt is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Inserts unless the number is taken, then reads the stored prompt.
    InsertThenSelect,
    /// A fault: the last writer wins.
    Overwrite,
    /// A fault: every writer answers with the prompt that it built.
    AnswerWithOwn,
}

struct Protocol {
    jobs: Vec<Vec<Job>>,
    crashes_max: u8,
    rule: Rule,
}

/// A prompt, named by the client that built it and a count.
type Prompt = (u8, u8);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    /// The number of the current epoch was read; 0 is none.
    Looked(usize),
    Built(usize, Prompt),
    /// The first statement has ended; its result is not known yet.
    Stored(usize, Prompt),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Client {
    step: Step,
    /// The number of jobs that are done.
    done: usize,
    built: u8,
    crashes: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    /// The stored epochs, from number 1 on.
    epochs: Vec<Prompt>,
    clients: Vec<Client>,
    /// The answers: the client, the number and the prompt.
    answers: Vec<(usize, usize, Prompt)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// The client takes its next step.
    Go(usize),
    /// The client crashes, loses its state and begins its job again. Stored prompts stay stored.
    Crash(usize),
}

impl World {
    fn answer(&mut self, client: usize, number: usize, prompt: Prompt) {
        self.answers.push((client, number, prompt));
        self.answers.sort_unstable();
        self.answers.dedup();
        self.clients[client].done += 1;
        self.clients[client].step = Step::Idle;
    }

    fn go(&mut self, client: usize, job: Job, rule: Rule) {
        match self.clients[client].step.clone() {
            Step::Idle => {
                let current = self.epochs.len();
                match self.epochs.last() {
                    Some(prompt) if job == Job::FirstTurn => self.answer(client, current, *prompt),
                    _ => self.clients[client].step = Step::Looked(current),
                }
            }
            Step::Looked(current) => {
                let own = &mut self.clients[client];
                let prompt = (u8::try_from(client).unwrap(), own.built);
                own.built += 1;
                own.step = Step::Built(current + 1, prompt);
            }
            Step::Built(number, prompt) => {
                if number == self.epochs.len() + 1 {
                    self.epochs.push(prompt);
                } else if rule == Rule::Overwrite {
                    self.epochs[number - 1] = prompt;
                }
                self.clients[client].step = Step::Stored(number, prompt);
            }
            Step::Stored(number, own) => {
                let stored = self.epochs[number - 1];
                let answer = if rule == Rule::AnswerWithOwn { own } else { stored };
                self.answer(client, number, answer);
            }
        }
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let client = Client { step: Step::Idle, done: 0, built: 0, crashes: 0 };
        vec![World { epochs: Vec::new(), clients: vec![client; self.jobs.len()], answers: Vec::new() }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, client) in world.clients.iter().enumerate() {
            if client.done < self.jobs[index].len() {
                actions.push(Action::Go(index));
            }
            if client.step != Step::Idle && client.crashes < self.crashes_max {
                actions.push(Action::Crash(index));
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Go(client) => next.go(client, self.jobs[client][next.clients[client].done], self.rule),
            Action::Crash(client) => {
                next.clients[client].crashes += 1;
                next.clients[client].step = Step::Idle;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_PROMPT, |_, world: &World| {
                world.answers.iter().all(|(_, number, prompt)| {
                    world.answers.iter().all(|(_, other, answer)| number != other || prompt == answer)
                })
            }),
            Property::always(DURABLE, |_, world: &World| {
                world.answers.iter().all(|(_, number, prompt)| world.epochs.get(number - 1) == Some(prompt))
            }),
            Property::sometimes("a loser gets the winner's prompt", |_, world: &World| {
                world.answers.iter().any(|(client, _, (builder, _))| *client != usize::from(*builder))
            }),
            Property::sometimes("a crash leaves what was stored", |model: &Self, world: &World| {
                let is_crashed = |client: &Client| client.crashes == model.crashes_max;
                world.clients.iter().all(is_crashed) && !world.epochs.is_empty()
            }),
            Property::sometimes("all clients are done", |model: &Self, world: &World| {
                world.clients.iter().zip(&model.jobs).all(|(client, jobs)| client.done == jobs.len())
            }),
        ]
    }
}

const ONE_PROMPT: &str = "an epoch has one prompt for all clients";
const DURABLE: &str = "an acknowledged prompt stays stored";

fn protocol(rule: Rule) -> Protocol {
    use Job::{FirstTurn, Rebuild};
    Protocol {
        jobs: vec![vec![FirstTurn, Rebuild], vec![FirstTurn, FirstTurn], vec![FirstTurn, Rebuild]],
        crashes_max: 1,
        rule,
    }
}

/// Row S1.
#[test]
fn every_order_of_steps_and_crashes_is_right() {
    let checked = protocol(Rule::InsertThenSelect).checker().spawn_bfs().join();
    checked.assert_properties();
    println!("{} states", checked.unique_state_count());
    assert!(checked.unique_state_count() > 10_000, "the model has become too small");
}

/// Rows S1 and S2, the control.
#[test]
fn faults_that_are_put_in_are_found() {
    for (rule, property) in [(Rule::Overwrite, DURABLE), (Rule::AnswerWithOwn, ONE_PROMPT)] {
        let checked = protocol(rule).checker().spawn_bfs().join();
        assert!(checked.discovery(property).is_some(), "{rule:?} is not found");
    }
}
