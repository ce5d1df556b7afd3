/**
 * The grammar as an automaton, in the shape that ANTLR gives it: messages name what a state expects, and recovery looks at
 * what may follow it. Beside the states stand the instructions that `recovering-parser.ts` walks.
 */
import { END, GRAMMAR, type Part, type RuleName } from './grammar.ts';

export type Edge =
  | { readonly kind: 'token'; readonly tokens: ReadonlySet<number>; readonly to: State }
  | {
      readonly kind: 'call';
      readonly rule: RuleName;
      readonly precedence: number;
      readonly to: State;
      readonly back: State;
    }
  | { readonly kind: 'free'; readonly to: State; readonly outermost?: RuleName }
  | { readonly kind: 'precedence'; readonly precedence: number; readonly to: State };

export interface State {
  readonly id: number;
  readonly rule: RuleName;
  /** `choice`: before alternatives; `entry`, `back`: before the first and the further turns of a loop; `stop`: the end. */
  readonly kind: 'plain' | 'choice' | 'entry' | 'back' | 'stop';
  readonly edges: Edge[];
  /** Of the entry of a loop over suffixes: where its body ends. */
  suffixesEnd?: State;
}

/** A place where the grammar goes more than one way: edge N of the state is alternative N + 1. */
export interface Decision {
  readonly id: number;
  readonly state: State;
  /** First tokens of each alternative, where one token decides. Else the prediction looks as far as it must. */
  single: readonly ReadonlySet<number>[] | undefined;
  /** The last alternative is to go on without. */
  readonly skips: boolean;
}

export type Instruction =
  | { readonly op: 'name'; readonly name: string }
  | { readonly op: 'suffix'; readonly name: string }
  | { readonly op: 'match'; readonly state: State; readonly tokens: ReadonlySet<number>; readonly label: string }
  | {
      readonly op: 'call';
      readonly state: State;
      readonly rule: RuleName;
      readonly precedence: number;
      readonly label: string;
    }
  | { readonly op: 'sync'; readonly state: State }
  /** `state` is where recovery stands, the decision's own or the end of a loop. `targets`: instruction of each alternative. */
  | { readonly op: 'choose'; readonly state: State; readonly decision: Decision; readonly targets: number[] }
  | { readonly op: 'jump'; target: number }
  | { readonly op: 'end' };

/** What may come next; `end`: the rule may be over. */
export interface Lookahead {
  readonly tokens: ReadonlySet<number>;
  readonly end: boolean;
}

export class Automaton {
  readonly code: Readonly<Record<RuleName, Instruction[]>>;
  readonly states: State[] = [];
  readonly #start = new Map<RuleName, State>();
  readonly #stop = new Map<RuleName, State>();
  readonly #decisions: Decision[] = [];
  readonly #next = new Map<State, Lookahead>();

  constructor() {
    const names = Object.keys(GRAMMAR) as RuleName[];
    for (const name of names) {
      this.#start.set(name, this.#state(name, 'plain'));
      this.#stop.set(name, this.#state(name, 'stop'));
    }
    this.code = Object.fromEntries(names.map((name) => [name, this.#rule(name)])) as Record<RuleName, Instruction[]>;
    this.#linkReturns();
    for (const decision of this.#decisions) decision.single = this.#single(decision.state);
  }

  start(rule: RuleName): State {
    return this.#start.get(rule)!;
  }

  stop(rule: RuleName): State {
    return this.#stop.get(rule)!;
  }

  /** What may come next within the rule of the state. */
  next(state: State): Lookahead {
    let known = this.#next.get(state);
    if (known === undefined) {
      known = this.#look(state);
      this.#next.set(state, known);
    }
    return known;
  }

  #state(rule: RuleName, kind: State['kind']): State {
    const state: State = { id: this.states.length, rule, kind, edges: [] };
    this.states.push(state);
    return state;
  }

  #decision(state: State, skips: boolean): Decision {
    const decision: Decision = { id: this.#decisions.length, state, single: undefined, skips };
    this.#decisions.push(decision);
    return decision;
  }

  #rule(name: RuleName): Instruction[] {
    const { alternatives, suffixes } = GRAMMAR[name];
    const code: Instruction[] = [];
    const after = suffixes === undefined ? this.stop(name) : this.#state(name, 'entry');
    this.#alternatives(name, code, this.start(name), alternatives, after, 'name');
    if (suffixes !== undefined) {
      const back = this.#state(name, 'back');
      after.suffixesEnd = back;
      back.edges.push({ kind: 'free', to: after });
      const decision = this.#decision(after, true);
      const enter: Instruction = { op: 'choose', state: after, decision, targets: [] };
      code.push(enter);
      enter.targets.push(code.length);
      const body = this.#state(name, 'plain');
      after.edges.push({ kind: 'free', to: body }, { kind: 'free', to: this.stop(name) });
      this.#alternatives(name, code, body, suffixes, back, 'suffix');
      const again: Instruction = { op: 'choose', state: back, decision, targets: [enter.targets[0]!, code.length + 1] };
      code.push(again);
      enter.targets.push(code.length);
    }
    code.push({ op: 'end' });
    return code;
  }

  #alternatives(
    rule: RuleName,
    code: Instruction[],
    from: State,
    alternatives: readonly { name: string; parts: readonly Part[]; precedence?: number }[],
    to: State,
    op: 'name' | 'suffix',
  ): void {
    const choice = alternatives.length === 1 ? from : this.#state(rule, 'choice');
    let choose: (Instruction & { op: 'choose' }) | undefined;
    if (alternatives.length > 1) {
      from.edges.push({ kind: 'free', to: choice });
      choose = { op: 'choose', state: choice, decision: this.#decision(choice, false), targets: [] };
      code.push(choose);
    }
    const jumps: (Instruction & { op: 'jump' })[] = [];
    for (const { name, parts, precedence } of alternatives) {
      choose?.targets.push(code.length);
      code.push({ op, name });
      const first = this.#state(rule, 'plain');
      choice.edges.push(
        precedence === undefined ? { kind: 'free', to: first } : { kind: 'precedence', precedence, to: first },
      );
      this.#sequence(rule, code, first, parts, to);
      const jump = { op: 'jump', target: 0 } as const;
      jumps.push(jump as Instruction & { op: 'jump' });
      code.push(jump);
    }
    for (const jump of jumps) jump.target = code.length;
  }

  #sequence(rule: RuleName, code: Instruction[], from: State, parts: readonly Part[], to: State): void {
    let state = from;
    for (const [index, part] of parts.entries()) {
      const next = index === parts.length - 1 ? to : this.#state(rule, 'plain');
      this.#part(rule, code, state, part, next);
      state = next;
    }
  }

  #part(rule: RuleName, code: Instruction[], from: State, part: Part, to: State): void {
    switch (part.kind) {
      case 'token': {
        const tokens = new Set(part.tokens);
        from.edges.push({ kind: 'token', tokens, to });
        code.push({ op: 'match', state: from, tokens, label: part.label });
        return;
      }
      case 'rule': {
        const { precedence, label } = part;
        // Alternatives that end with the same call come back to the same place, and cannot be told apart there.
        from.edges.push({ kind: 'call', rule: part.rule, precedence, to: this.start(part.rule), back: to });
        code.push({ op: 'call', state: from, rule: part.rule, precedence, label });
        return;
      }
      default:
        this.#repeated(rule, code, from, part, to);
    }
  }

  #repeated(
    rule: RuleName,
    code: Instruction[],
    from: State,
    { kind, body }: { readonly kind: 'maybe' | 'many' | 'some'; readonly body: readonly Part[] },
    to: State,
  ): void {
    const before = this.#state(rule, kind === 'many' ? 'entry' : 'choice');
    const first = this.#state(rule, 'plain');
    from.edges.push({ kind: 'free', to: before });
    before.edges.push({ kind: 'free', to: first });
    if (kind === 'some') {
      const back = this.#state(rule, 'back');
      code.push({ op: 'sync', state: before });
      const start = code.length;
      this.#sequence(rule, code, first, body, back);
      back.edges.push({ kind: 'free', to: before }, { kind: 'free', to });
      code.push({ op: 'choose', state: back, decision: this.#decision(back, true), targets: [start, code.length + 1] });
      return;
    }
    before.edges.push({ kind: 'free', to });
    const decision = this.#decision(before, true);
    const choose: Instruction = { op: 'choose', state: before, decision, targets: [code.length + 1] };
    code.push(choose);
    if (kind === 'maybe') {
      this.#sequence(rule, code, first, body, to);
    } else {
      const back = this.#state(rule, 'back');
      this.#sequence(rule, code, first, body, back);
      back.edges.push({ kind: 'free', to: before });
      code.push({ op: 'choose', state: back, decision, targets: [choose.targets[0]!, code.length + 1] });
    }
    choose.targets.push(code.length);
  }

  /** A rule that ends without knowing its caller may go on behind any call of it. */
  #linkReturns(): void {
    for (const { edges } of this.states) {
      for (const edge of edges) {
        if (edge.kind !== 'call') continue;
        const recursive = GRAMMAR[edge.rule].suffixes !== undefined && edge.precedence === 0;
        this.stop(edge.rule).edges.push({
          kind: 'free',
          to: edge.back,
          ...(recursive ? { outermost: edge.rule } : {}),
        });
      }
    }
  }

  #look(from: State): Lookahead {
    const tokens = new Set<number>();
    let end = false;
    const seen = new Set<string>();
    const calls = new Set<RuleName>();
    const visit = (state: State, stack: readonly State[]): void => {
      const key = [state, ...stack].map(({ id }) => id).join();
      if (seen.has(key)) return;
      seen.add(key);
      if (state.kind === 'stop') {
        const [back, ...rest] = stack;
        if (back === undefined) {
          end = true;
          return;
        }
        const open = calls.delete(state.rule);
        visit(back, rest);
        if (open) calls.add(state.rule);
        return;
      }
      for (const edge of state.edges) {
        if (edge.kind === 'token') {
          for (const kind of edge.tokens) tokens.add(kind);
        } else if (edge.kind !== 'call') {
          visit(edge.to, stack);
        } else if (!calls.has(edge.rule)) {
          calls.add(edge.rule);
          visit(edge.to, [edge.back, ...stack]);
          calls.delete(edge.rule);
        }
      }
    };
    visit(from, []);
    return { tokens, end };
  }

  /** The first tokens of each alternative when no token begins two of them and no precedence has a say. */
  #single({ edges }: State): readonly ReadonlySet<number>[] | undefined {
    const sets: Set<number>[] = [];
    const all = new Set<number>();
    for (const edge of edges) {
      const set = new Set<number>();
      if (!this.#first(edge, set, new Set())) return undefined;
      for (const kind of set) {
        if (all.has(kind)) return undefined;
        all.add(kind);
      }
      sets.push(set);
    }
    return sets;
  }

  /** False where precedence decides. Beyond the end of a rule anything that follows a call of it counts. */
  #first(edge: Edge, into: Set<number>, seen: Set<State>): boolean {
    if (edge.kind === 'token') {
      for (const kind of edge.tokens) into.add(kind);
      return true;
    }
    if (edge.kind === 'precedence') return false;
    if (seen.has(edge.to)) return true;
    seen.add(edge.to);
    if (edge.to.rule === 'start' && edge.to.kind === 'stop') into.add(END);
    return edge.to.edges.every((next) => this.#first(next, into, seen));
  }
}
