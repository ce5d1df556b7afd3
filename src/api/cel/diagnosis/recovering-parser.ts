/**
 * Reads a text that is wrong to its end, as upstream's generated parser does, so that all its faults are told in the same
 * words. ANTLR's rules, in short:
 *
 * - Before a choice and at each turn of a loop: a token that cannot come next is dropped when the one behind it can
 *   ("extraneous input"); in a loop everything up to something known is dropped.
 * - A token that is missing: the one that stands there is dropped when the next is the wanted one; it is thought to be
 *   there when what stands there may follow it ("missing ')' at"); else the rule is given up ("mismatched input").
 * - A choice that no alternative fits gives up the rule as well ("no viable alternative").
 * - A rule that was given up skips what no open rule could go on with, and its caller continues.
 * - After a fault nothing more is told until a token matched.
 */
import { Automaton, type Instruction, type State } from './automaton.ts';
import { END, type RuleName, TOKENS } from './grammar.ts';
import { Predictor } from './prediction.ts';
import type { Stack } from './stacks.ts';
import { type StreamToken, TokenStream } from './token-stream.ts';
import { TreeNode, type TreeToken } from './tree.ts';

/** Upstream's limits: nesting of one rule, repairs, tokens that one repair skips, faults told. */
const MAX_DEPTH = 250;
const MAX_REPAIRS = 30;
const MAX_SKIPPED = 256;
const MAX_FAULTS = 100;

/** Ends the parse. `message` is set when it is a fault of its own, without a place. */
class Halt {
  readonly message: string | undefined;

  constructor(message?: string) {
    this.message = message;
  }
}

/** Gives up a rule. */
class Failure {
  readonly token: StreamToken;
  readonly message: string;

  constructor(token: StreamToken, message: string) {
    this.token = token;
    this.message = message;
  }
}

/** A rule that is being read. */
interface Frame {
  readonly rule: RuleName;
  readonly caller: Frame | undefined;
  /** The state behind the call. */
  readonly back: State | undefined;
  /** Under which the caller keeps the node. */
  readonly label: string;
  readonly precedence: number | undefined;
  readonly first: StreamToken;
  node: TreeNode;
  next: number;
  stack: Stack | undefined;
}

/** `at`: offset, or undefined for the whole text. */
export type FaultSink = (at: number | undefined, message: string) => void;

let automaton: Automaton | undefined;

/** The tree of the text; undefined when reading it was given up. Faults go to the sink as they are found. */
export function parseWithRecovery(source: string, fault: FaultSink): TreeNode | undefined {
  automaton ??= new Automaton();
  return new RecoveringParser(automaton, source, fault).parse();
}

class RecoveringParser {
  readonly #automaton: Automaton;
  readonly #predictor: Predictor;
  readonly #tokens: TokenStream;
  readonly #fault: FaultSink;
  readonly #depths = new Map<RuleName, number>();
  #state: State;
  #frame: Frame | undefined;
  #faults = 0;
  #repairs = 0;
  /** A fault was told, and no token has matched since. */
  #recovering = false;
  #lastFault: { readonly position: number; readonly states: Set<State> } | undefined;

  constructor(machine: Automaton, source: string, fault: FaultSink) {
    this.#automaton = machine;
    this.#predictor = new Predictor(machine);
    this.#fault = fault;
    this.#state = machine.start('start');
    this.#tokens = new TokenStream(source, (at, text) => this.#tell(at, `token recognition error at: '${text}'`));
  }

  parse(): TreeNode | undefined {
    try {
      this.#enter('start', undefined, '', 0);
      const start = this.#frame!;
      while (this.#frame !== undefined) this.#turn(this.#frame);
      return start.node;
    } catch (error) {
      if (!(error instanceof Halt)) throw error;
      if (error.message !== undefined) this.#fault(undefined, error.message);
      return undefined;
    }
  }

  /** One instruction of the innermost rule. */
  #turn(frame: Frame): void {
    const instruction = this.#automaton.code[frame.rule][frame.next++]!;
    try {
      this.#do(frame, instruction);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (!this.#recovering) {
        this.#recovering = true;
        this.#tell(error.token.at, error.message);
      }
      this.#recover();
      this.#leave(frame);
    }
  }

  #do(frame: Frame, instruction: Instruction): void {
    switch (instruction.op) {
      case 'name':
        frame.node = new TreeNode(instruction.name, frame.first.at);
        return;
      case 'suffix': {
        const node = new TreeNode(instruction.name, frame.first.at);
        node.add('left', frame.node);
        frame.node = node;
        return;
      }
      case 'jump':
        frame.next = instruction.target;
        return;
      case 'sync':
        this.#state = instruction.state;
        this.#sync();
        return;
      case 'choose': {
        this.#state = instruction.state;
        this.#sync();
        const alternative = this.#choose(frame, instruction);
        frame.next = instruction.targets[alternative]!;
        return;
      }
      case 'match': {
        this.#state = instruction.state;
        frame.node.add(instruction.label, this.#match(instruction.tokens));
        return;
      }
      case 'call': {
        this.#state = instruction.state;
        const back = (instruction.state.edges[0] as { readonly back: State }).back;
        this.#enter(instruction.rule, back, instruction.label, instruction.precedence);
        return;
      }
      case 'end':
        this.#leave(frame);
    }
  }

  #enter(rule: RuleName, back: State | undefined, label: string, precedence: number): void {
    const first = this.#tokens.ahead(0);
    const recursive = rule === 'relation' || rule === 'calc' || rule === 'member';
    this.#frame = {
      rule,
      caller: this.#frame,
      back,
      label,
      precedence: recursive ? precedence : this.#frame?.precedence,
      first,
      node: new TreeNode(rule, first.at),
      next: 0,
      stack: undefined,
    };
    const depth = (this.#depths.get(rule) ?? 0) + 1;
    this.#depths.set(rule, depth);
    if (depth > MAX_DEPTH) throw new Halt(`expression recursion limit exceeded: ${MAX_DEPTH}`);
  }

  #leave(frame: Frame): void {
    this.#depths.set(frame.rule, this.#depths.get(frame.rule)! - 1);
    this.#frame = frame.caller;
    frame.caller?.node.add(frame.label, frame.node);
  }

  /** Index of the alternative. */
  #choose(frame: Frame, { decision }: Instruction & { readonly op: 'choose' }): number {
    const kind = this.#tokens.ahead(0).kind;
    if (decision.single !== undefined) {
      const index = decision.single.findIndex((set) => set.has(kind));
      if (decision.skips) return index === 0 ? 0 : 1;
      if (index !== -1) return index;
      throw this.#noAlternative(0);
    }
    const predicted = this.#predictor.predict(
      decision,
      frame.precedence ?? 0,
      { kind: (offset) => this.#tokens.ahead(offset).kind },
      () => this.#stackOf(frame),
    );
    if (predicted.alternative === undefined) throw this.#noAlternative(predicted.at);
    return predicted.alternative - 1;
  }

  #noAlternative(offset: number): Failure {
    const first = this.#tokens.ahead(0);
    const last = this.#tokens.ahead(offset);
    const text = first.kind === END ? '<EOF>' : this.#tokens.text(first, last);
    const message = `no viable alternative at input ${quoted(text)}`;
    // Upstream's parser makes other words of this one.
    const words = message.replaceAll(
      /no viable alternative at input '.(true|false|null)'/g,
      "mismatched input '$1' expecting IDENTIFIER",
    );
    return new Failure(last, words);
  }

  #stackOf(frame: Frame): Stack {
    const open: Frame[] = [];
    let at: Frame | undefined = frame;
    for (; at !== undefined && at.stack === undefined; at = at.caller) open.push(at);
    let stack = at?.stack ?? this.#predictor.stacks.bottom;
    for (const inner of open.reverse()) {
      if (inner.back !== undefined) stack = this.#predictor.stacks.push(stack, inner.back.id);
      inner.stack = stack;
    }
    return stack;
  }

  #match(wanted: ReadonlySet<number>): TreeToken {
    if (wanted.has(this.#tokens.ahead(0).kind)) {
      this.#matched();
      return this.#tokens.consume();
    }
    this.#countRepair();
    if (this.#dropOne()) return this.#tokens.consume();
    const target = (this.#state.edges[0] as { readonly to: State }).to;
    if (this.#nextAfter(target).has(this.#tokens.ahead(0).kind)) return this.#pretend();
    throw this.#mismatch();
  }

  /** The token that is missing, for the tree. */
  #pretend(): TreeToken {
    const found = this.#tokens.ahead(0);
    const expected = this.#expected();
    if (!this.#recovering) {
      this.#recovering = true;
      this.#tell(found.at, `missing ${listed(expected)} at ${quoted(found.text)}`);
    }
    const place = found.kind === END ? (this.#tokens.previous ?? found) : found;
    const kind = Math.min(...expected);
    const name = TOKENS[kind]!;
    return { kind, text: `<missing ${name.startsWith("'") ? name : 'undefined'}>`, at: place.at };
  }

  #mismatch(): Failure {
    const token = this.#tokens.ahead(0);
    return new Failure(token, `mismatched input ${quoted(token.text)} expecting ${listed(this.#expected())}`);
  }

  #matched(): void {
    this.#recovering = false;
    this.#lastFault = undefined;
  }

  #sync(): void {
    if (this.#recovering) return;
    const next = this.#automaton.next(this.#state);
    if (next.end || next.tokens.has(this.#tokens.ahead(0).kind)) return;
    if (this.#state.kind === 'back') {
      const known = new Set([...this.#expected(), ...this.#recoverySet()]);
      this.#tellUnwanted();
      this.#skipUntil(known, () => {});
    } else if (!this.#dropOne()) {
      throw this.#mismatch();
    }
  }

  /** Drops the current token when the next is wanted. */
  #dropOne(): boolean {
    if (!this.#expected().has(this.#tokens.ahead(1).kind)) return false;
    this.#tellUnwanted();
    this.#tokens.consume();
    this.#matched();
    return true;
  }

  #tellUnwanted(): void {
    if (this.#recovering) return;
    this.#recovering = true;
    const token = this.#tokens.ahead(0);
    this.#tell(token.at, `extraneous input ${quoted(token.text)} expecting ${listed(this.#expected())}`);
  }

  #recover(): void {
    this.#countRepair();
    let skipped = 0;
    const count = (): void => {
      if (skipped++ >= MAX_SKIPPED) throw new Halt(`error recovery token lookahead limit exceeded: ${MAX_SKIPPED}`);
    };
    // The same place twice would go on for ever.
    if (this.#lastFault?.position === this.#tokens.position && this.#lastFault.states.has(this.#state)) {
      count();
      this.#tokens.consume();
    }
    const states = this.#lastFault?.states ?? new Set();
    this.#lastFault = { position: this.#tokens.position, states: states.add(this.#state) };
    this.#skipUntil(this.#recoverySet(), count);
  }

  #skipUntil(known: ReadonlySet<number>, count: () => void): void {
    for (;;) {
      const { kind } = this.#tokens.ahead(0);
      if (kind === END || known.has(kind)) return;
      count();
      this.#tokens.consume();
    }
  }

  #countRepair(): void {
    if (this.#repairs++ < MAX_REPAIRS) return;
    this.#tell(this.#tokens.ahead(0).at, `error recovery attempt limit exceeded: ${MAX_REPAIRS}`);
    throw new Halt();
  }

  /** What may come next here, in this rule and, where it may be over, in those that wait for it. */
  #expected(): Set<number> {
    return this.#nextAfter(this.#state);
  }

  #nextAfter(state: State): Set<number> {
    let next = this.#automaton.next(state);
    const tokens = new Set(next.tokens);
    for (let frame = this.#frame; next.end && frame?.back !== undefined; frame = frame.caller) {
      next = this.#automaton.next(frame.back);
      for (const kind of next.tokens) tokens.add(kind);
    }
    if (next.end) tokens.add(END);
    return tokens;
  }

  /** What any of the open rules could go on with. */
  #recoverySet(): Set<number> {
    const tokens = new Set<number>();
    for (let frame = this.#frame; frame?.back !== undefined; frame = frame.caller) {
      for (const kind of this.#automaton.next(frame.back).tokens) tokens.add(kind);
    }
    return tokens;
  }

  #tell(at: number, message: string): void {
    if (this.#faults < MAX_FAULTS) {
      this.#faults++;
      this.#fault(at, `Syntax error: ${message}`);
      return;
    }
    this.#fault(at, `Syntax error: More than ${MAX_FAULTS} syntax errors`);
    throw new Halt();
  }
}

/** `'x'`, or `{'x', 'y'}`. */
function listed(kinds: ReadonlySet<number>): string {
  const names = [...kinds].sort((a, b) => a - b).map((kind) => TOKENS[kind]!);
  return names.length === 1 ? names[0]! : `{${names.join(', ')}}`;
}

const quoted = (text: string): string =>
  `'${text.replaceAll('\t', '\\t').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}'`;
