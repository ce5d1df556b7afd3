/**
 * Which alternative a decision takes, by running all of them side by side over the tokens ahead (ANTLR's ALL(*)). First
 * without looking at who called the rule; only when two alternatives cannot be told apart that way, once more with the
 * callers known. Where no alternative goes on, the place is what "no viable alternative at input" names. What was found
 * without callers is kept: a text of thousands of equal parts costs no more than one of them each.
 */
import type { Automaton, Decision, Edge, State } from './automaton.ts';
import { END, type RuleName } from './grammar.ts';
import { isBottom, mayBeEmpty, type Stack, Stacks } from './stacks.ts';

/** One way through the automaton, on behalf of an alternative. */
interface Way {
  readonly state: State;
  readonly alternative: number;
  stack: Stack;
  /** It has left the rule of the decision. */
  outer: boolean;
  /** It came back into the rule by the call that binds loosest, so it is no copy of what a suffix would do. */
  kept: boolean;
}

/** What the tokens so far lead to. */
interface Point {
  readonly ways: readonly Way[];
  readonly next: Map<number, Point | undefined>;
  readonly alternative: number | undefined;
  /** The alternatives cannot be told apart without the callers. */
  readonly ambiguous: boolean;
}

export interface Lookahead {
  /** Kind of the token, `offset` tokens ahead of the current one. */
  kind(offset: number): number;
}

/** `at`: how many tokens ahead the last alternative failed. */
export type Prediction = { readonly alternative: number } | { readonly alternative: undefined; readonly at: number };

export class Predictor {
  readonly stacks = new Stacks();
  readonly #automaton: Automaton;
  readonly #starts = new Map<string, Point>();
  readonly #points = new Map<string, Point>();
  /** Of the running prediction: precedence of the rule, and the rule when the decision is its loop over suffixes. */
  #precedence = 0;
  #looping: RuleName | undefined;

  constructor(automaton: Automaton) {
    this.#automaton = automaton;
  }

  /** `callers`: where the rules that are open return to. It is asked for only when it is needed. */
  predict(decision: Decision, precedence: number, tokens: Lookahead, callers: () => Stack): Prediction {
    const { state } = decision;
    this.#precedence = precedence;
    this.#looping = state.suffixesEnd === undefined ? undefined : state.rule;
    const found = this.#run(this.#startOf(decision, undefined), tokens, false);
    if (found !== 'ambiguous') return found;
    const sure = this.#run(this.#startOf(decision, callers()), tokens, true);
    return sure as Prediction;
  }

  #run(from: Point, tokens: Lookahead, whole: boolean): Prediction | 'ambiguous' {
    let point = from;
    for (let offset = 0; ; ) {
      const kind = tokens.kind(offset);
      const next = this.#follow(point, kind, whole);
      if (next === undefined) {
        const alternative = finished(point.ways);
        // With the callers known upstream has gone back to the first token before it names the one that failed.
        return alternative === undefined ? { alternative, at: whole ? 0 : offset } : { alternative };
      }
      if (next.ambiguous) return 'ambiguous';
      if (next.alternative !== undefined) return { alternative: next.alternative };
      point = next;
      if (kind !== END) offset++;
    }
  }

  #startOf({ id, state }: Decision, callers: Stack | undefined): Point {
    const key = `${id}/${this.#precedence}/${callers?.id ?? ''}`;
    let point = this.#starts.get(key);
    if (point === undefined) {
      const ways = this.#start(state, callers ?? this.stacks.bottom, callers !== undefined);
      const filtered = callers === undefined && this.#looping !== undefined ? this.#filtered(ways) : ways;
      point = this.#point(filtered, undefined, false, callers !== undefined);
      this.#starts.set(key, point);
    }
    return point;
  }

  #follow(point: Point, kind: number, whole: boolean): Point | undefined {
    if (point.next.has(kind)) return point.next.get(kind);
    const ways = this.#reach(point.ways, kind, whole);
    let next: Point | undefined;
    if (ways.length > 0) {
      const alternative = onlyAlternative(ways) ?? (whole ? onlyViable(ways) : undefined);
      next = this.#point(ways, alternative, !whole && alternative === undefined && isConflict(ways), whole);
    }
    point.next.set(kind, next);
    return next;
  }

  #point(ways: readonly Way[], alternative: number | undefined, ambiguous: boolean, whole = false): Point {
    const places = ways.map((way) => `${keyOf(way)}/${way.stack.id}/${way.outer}`).join();
    const key = `${this.#looping}:${whole}:${places}`;
    let point = this.#points.get(key);
    if (point === undefined) {
      point = { ways, next: new Map(), alternative, ambiguous };
      this.#points.set(key, point);
    }
    return point;
  }

  #start(state: State, stack: Stack, whole: boolean): Way[] {
    const ways = new Ways(this.stacks, whole);
    for (const [index, edge] of state.edges.entries()) {
      const way = { state: state, alternative: index + 1, stack, outer: false, kept: false };
      const first = this.#step(way, edge, true);
      if (first !== undefined) this.#close(first, ways, new Set(), { whole, first: true, atEnd: false });
    }
    return ways.list;
  }

  /** Without the ways of "no more suffixes" that only repeat, from outside, what a suffix does. */
  #filtered(ways: readonly Way[]): Way[] {
    const taken = new Map<State, Stack>();
    for (const way of ways) if (way.alternative === 1) taken.set(way.state, way.stack);
    const kept = ways.filter((way) => way.alternative !== 1 && (way.kept || taken.get(way.state) !== way.stack));
    return [...ways.filter((way) => way.alternative === 1), ...kept];
  }

  /** All ways that take the token, each led on to where the next token is needed. */
  #reach(from: readonly Way[], kind: number, whole: boolean): Way[] {
    const moved = new Ways(this.stacks, whole);
    const stopped: Way[] = [];
    for (const way of from) {
      if (way.state.kind === 'stop') {
        if (whole || kind === END) stopped.push(way);
        continue;
      }
      for (const edge of way.state.edges) {
        if (edge.kind === 'token' && edge.tokens.has(kind)) moved.add({ ...way, state: edge.to });
      }
    }
    if (stopped.length === 0 && kind !== END && onlyAlternative(moved.list) !== undefined) return moved.list;
    const reached = new Ways(this.stacks, whole);
    const seen = new Set<string>();
    for (const way of moved.list) this.#close(way, reached, seen, { whole, first: false, atEnd: kind === END });
    const result = kind === END ? this.#atEnd(reached, moved.list, whole) : reached;
    if (stopped.length > 0 && !(whole && result.list.some(({ state }) => state.kind === 'stop'))) {
      for (const way of stopped) result.add({ ...way });
    }
    return result.list;
  }

  /** At the end of the text only finished rules count. */
  #atEnd(reached: Ways, moved: readonly Way[], whole: boolean): Ways {
    const nothingNew = sameWays(reached.list, moved);
    const result = new Ways(this.stacks, whole);
    for (const way of reached.list) {
      if (way.state.kind === 'stop') result.add(way);
      else if (nothingNew && isFree(way.state) && this.#automaton.next(way.state).end) {
        result.add({ ...way, state: this.#automaton.stop(way.state.rule) });
      }
    }
    return result;
  }

  /** Follows everything that takes no token. */
  #close(
    from: Way,
    into: Ways,
    seen: Set<string>,
    { whole, first, atEnd }: { readonly whole: boolean; readonly first: boolean; readonly atEnd: boolean },
  ): void {
    const open: { readonly way: Way; readonly depth: number }[] = [{ way: from, depth: 0 }];
    for (let item = open.pop(); item !== undefined; item = open.pop()) {
      const { way, depth } = item;
      const { state } = way;
      const more: { readonly way: Way; readonly depth: number }[] = [];
      if (state.kind === 'stop' && way.stack !== this.stacks.bottom) {
        for (const top of way.stack.tops) {
          if (!isBottom(top.state)) {
            const back = this.#automaton.states[top.state]!;
            more.push({ way: { ...way, state: back, stack: top.parent!, kept: false }, depth });
          } else if (whole) {
            into.add({ ...way, stack: this.stacks.bottom });
          } else {
            if (!isFree(state)) into.add(way);
            this.#expand(way, depth, seen, { first, atEnd }, more);
          }
        }
      } else if (state.kind === 'stop' && whole) {
        into.add(way);
      } else {
        if (!isFree(state)) into.add(way);
        this.#expand(way, depth, seen, { first, atEnd }, more);
      }
      for (let i = more.length - 1; i >= 0; i--) open.push(more[i]!);
    }
  }

  #expand(
    way: Way,
    depth: number,
    seen: Set<string>,
    { first, atEnd }: { readonly first: boolean; readonly atEnd: boolean },
    more: { readonly way: Way; readonly depth: number }[],
  ): void {
    for (const [index, edge] of way.state.edges.entries()) {
      if (index === 0 && this.#repeatsItself(way)) continue;
      if (edge.kind === 'token') {
        if (!atEnd || !edge.tokens.has(END)) continue;
        const next = { ...way, state: edge.to };
        if (marked(next, seen)) more.push({ way: next, depth });
        continue;
      }
      const next = this.#step(way, edge, first && depth === 0);
      if (next === undefined) continue;
      if (way.state.kind === 'stop') {
        next.outer = true;
        if (edge.kind === 'free' && edge.outermost !== undefined && edge.outermost === this.#looping) next.kept = true;
        if (marked(next, seen)) more.push({ way: next, depth: depth - 1 });
      } else {
        more.push({ way: next, depth: edge.kind === 'call' && depth >= 0 ? depth + 1 : depth });
      }
    }
  }

  #step(way: Way, edge: Edge, here: boolean): Way | undefined {
    switch (edge.kind) {
      case 'token':
        return undefined;
      case 'call':
        return { ...way, state: edge.to, stack: this.stacks.push(way.stack, edge.back.id) };
      case 'free':
        return { ...way, state: edge.to };
      case 'precedence':
        // Only the rule that decides knows its precedence.
        return here && edge.precedence < this.#precedence ? undefined : { ...way, state: edge.to };
    }
  }

  /** Another suffix behind the operand of a suffix is found by the loop outside as well. */
  #repeatsItself({ state, stack }: Way): boolean {
    if (state.suffixesEnd === undefined || stack === this.stacks.bottom || mayBeEmpty(stack)) return false;
    return stack.tops.every((top) => top.state === state.suffixesEnd!.id);
  }
}

/** A set of ways in the order they were found; those of one state and alternative are merged. */
class Ways {
  readonly list: Way[] = [];
  readonly #known = new Map<string, Way>();
  readonly #stacks: Stacks;
  readonly #whole: boolean;

  constructor(stacks: Stacks, whole: boolean) {
    this.#stacks = stacks;
    this.#whole = whole;
  }

  add(way: Way): void {
    const key = `${way.state.id}/${way.alternative}`;
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#known.set(key, way);
      this.list.push(way);
      return;
    }
    known.stack = this.#stacks.merge(known.stack, way.stack, !this.#whole);
    known.outer ||= way.outer;
    known.kept ||= way.kept;
  }
}

const isFree = ({ edges }: State): boolean => edges.length > 0 && edges[0]!.kind !== 'token';
const keyOf = ({ state, alternative, kept }: Way): string => `${state.id}/${alternative}/${kept}`;

/** False when the way was there before. */
function marked(way: Way, seen: Set<string>): boolean {
  const key = `${keyOf(way)}/${way.stack.id}`;
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

function onlyAlternative(ways: readonly Way[]): number | undefined {
  const first = ways[0]?.alternative;
  return ways.every(({ alternative }) => alternative === first) ? first : undefined;
}

/** Alternatives that have come to the very same place. */
function together(ways: readonly Way[], key: (way: Way) => string): Set<number>[] {
  const places = new Map<string, Set<number>>();
  for (const way of ways) {
    const place = places.get(key(way)) ?? new Set();
    places.set(key(way), place.add(way.alternative));
  }
  return [...places.values()];
}

function isConflict(ways: readonly Way[]): boolean {
  if (ways.every(({ state }) => state.kind === 'stop')) return true;
  return (
    together(ways, ({ state, stack }) => `${state.id}/${stack.id}`).some((place) => place.size > 1) &&
    together(ways, ({ state }) => String(state.id)).every((place) => place.size > 1)
  );
}

/** The first alternative of every place, when it is the same everywhere. */
function onlyViable(ways: readonly Way[]): number | undefined {
  const firsts = together(ways, ({ state, stack }) => `${state.id}/${stack.id}`).map((place) => Math.min(...place));
  return firsts.every((first) => first === firsts[0]) ? firsts[0] : undefined;
}

/** The first alternative that had read its whole rule when no way went on. */
function finished(ways: readonly Way[]): number | undefined {
  const done = ways.filter(({ state, stack, outer }) => outer || (state.kind === 'stop' && mayBeEmpty(stack)));
  return done.length === 0 ? undefined : Math.min(...done.map(({ alternative }) => alternative));
}

function sameWays(a: readonly Way[], b: readonly Way[]): boolean {
  return (
    a.length === b.length &&
    a.every((way, i) => keyOf(way) === keyOf(b[i]!) && way.stack === b[i]!.stack && way.outer === b[i]!.outer)
  );
}
