/**
 * Macros over lists and maps as loops. The cost of a turn is that of the accumulator cel-go spells out: reading it,
 * testing it, and joining the next value to it; the empty one that it starts with costs nothing.
 */

import { constantOf } from './compile-constant.ts';
import { type Code, type Frame, type NodeCompiler, spend } from './compile-frame.ts';
import { elementWrap } from './compile-path.ts';
import { LIST_COST } from './cost-models.ts';
import { CelEvaluationError, isFailure, noOverload } from './errors.ts';
import { mapFind, mapReplace } from './map-access.ts';
import type { Fold } from './syntax.ts';
import { CelMap, fromJson, isPlainObject, runtimeTypeName } from './values.ts';

/** Sets the names of each turn, until one gives false. Gives the failure when there is nothing to go over. */
type Turns = (frame: Frame, turn: () => boolean) => CelEvaluationError | undefined;

export function compileFold(compiler: NodeCompiler, expr: Fold): Code {
  const range = compiler.compile(expr.range);
  return compiler.withLocals([...expr.names], false, (slots) => {
    const test = expr.test === undefined ? undefined : compiler.compile(expr.test);
    const body = expr.body === undefined ? undefined : compiler.compile(expr.body);
    const turns = loop(range, slots, elementWrap(expr.range.type) ?? fromJson);
    switch (expr.kind) {
      case 'all':
        return quantifier(turns, test!, false);
      case 'exists':
        return quantifier(turns, test!, true);
      case 'existsOne':
        return exactlyOne(turns, test!);
      case 'filter':
        return collect(turns, test, (frame) => frame.values[slots[0]!], LIST_COST + 3);
      case 'map':
      case 'transformList': {
        const known = constantOf(compiler.environment, expr.body!) !== undefined;
        return collect(turns, test, body!, (known ? 0 : LIST_COST) + 2);
      }
      case 'transformMap':
        return collectEntries(turns, test, slots[0]!, body!);
      case 'transformMapEntry':
        return collectMaps(turns, test, body!);
    }
  });
}

/** Runs a turn for each element: of a list the item (or index and item), of a map the key (or key and value). */
function loop(range: Code, slots: readonly number[], wrap: (raw: unknown) => unknown): Turns {
  const [first, second] = slots;
  return (frame, turn) => {
    const target = range(frame);
    if (isFailure(target)) return target;
    const { values } = frame;
    if (Array.isArray(target)) {
      for (let i = 0; i < target.length; i++) {
        if (second !== undefined) values[first!] = i;
        values[second ?? first!] = wrap(target[i]);
        if (!turn()) return undefined;
      }
    } else if (isPlainObject(target)) {
      for (const key of Object.keys(target)) {
        values[first!] = key;
        if (second !== undefined) values[second] = wrap(target[key]);
        if (!turn()) return undefined;
      }
    } else if (target instanceof CelMap) {
      for (const [key, value] of target.entries.values()) {
        values[first!] = key;
        if (second !== undefined) values[second] = value;
        if (!turn()) return undefined;
      }
    } else {
      return new CelEvaluationError(`got '${runtimeTypeName(target)}', expected iterable type`);
    }
    return undefined;
  };
}

/** `all` and `exists`: the first decisive element ends it; an error counts only when none is decisive. */
function quantifier(turns: Turns, test: Code, decisive: boolean): Code {
  // `exists` negates the accumulator before each turn.
  const turnCost = decisive ? 4 : 3;
  return (frame) => {
    let failure: CelEvaluationError | undefined;
    let decided = false;
    const nothing = turns(frame, () => {
      // That it is decided shows before the next turn, which is no turn then: the accumulator is looked at once more.
      if (decided) {
        spend(frame, turnCost - 1);
        return false;
      }
      spend(frame, turnCost);
      const value = test(frame);
      if (value === decisive) decided = true;
      else if (typeof value !== 'boolean') failure ??= isFailure(value) ? value : noOverload();
      return true;
    });
    if (nothing !== undefined) return nothing;
    frame.cost += 1;
    return decided ? decisive : (failure ?? !decisive);
  };
}

/** The last error is reported: each test makes the accumulator anew. */
function exactlyOne(turns: Turns, test: Code): Code {
  return (frame) => {
    let count = 0;
    let failure: CelEvaluationError | undefined;
    const nothing = turns(frame, () => {
      const value = test(frame);
      if (typeof value !== 'boolean') failure = isFailure(value) ? value : noOverload();
      if (value !== true) return true;
      count++;
      spend(frame, 2);
      return true;
    });
    if (nothing !== undefined) return nothing;
    frame.cost += 2;
    return failure ?? count === 1;
  };
}

/** Puts the value of a turn into the accumulator, which is the failure once there is one. Gives the accumulator. */
type Put<T> = (frame: Frame, into: T | CelEvaluationError) => T | CelEvaluationError;

/** An element that does not pass costs its test only; a test that fails makes the accumulator a failure. */
function collector<T>(turns: Turns, test: Code | undefined, start: () => T, put: Put<T>): Code {
  return (frame) => {
    let result: T | CelEvaluationError = start();
    const nothing = turns(frame, () => {
      const kept = test === undefined ? true : test(frame);
      if (typeof kept !== 'boolean') result = isFailure(kept) ? kept : noOverload();
      else if (kept) result = put(frame, result);
      return true;
    });
    if (nothing !== undefined) return nothing;
    frame.cost += 1;
    return result;
  };
}

/** `joining`: what it costs to join a value to a list: the accumulator, the list of one, the joining. */
const collect = (turns: Turns, test: Code | undefined, body: Code, joining: number): Code =>
  collector<unknown[]>(
    turns,
    test,
    () => [],
    (frame, list) => {
      const value = body(frame);
      spend(frame, joining);
      if (isFailure(list)) return list;
      if (isFailure(value)) return value;
      list.push(value);
      return list;
    },
  );

const newMap = (): CelMap => new CelMap();

const collectEntries = (turns: Turns, test: Code | undefined, key: number, body: Code): Code =>
  collector(turns, test, newMap, (frame, map) => {
    spend(frame, 1);
    // The accumulator is the first argument: nothing else is looked at when it is a failure.
    if (isFailure(map)) return map;
    const value = body(frame);
    spend(frame, 2);
    return isFailure(value) ? value : insertNew(map, frame.values[key], value);
  });

const collectMaps = (turns: Turns, test: Code | undefined, body: Code): Code =>
  collector(turns, test, newMap, (frame, map) => {
    const value = body(frame);
    spend(frame, 2);
    if (isFailure(map)) return map;
    return isFailure(value) ? value : insertAll(map, value);
  });

function insertAll(map: CelMap, entries: unknown): CelMap | CelEvaluationError {
  if (!(entries instanceof CelMap) && !isPlainObject(entries)) return noOverload();
  const pairs = entries instanceof CelMap ? entries.entries.values() : Object.entries(entries);
  for (const [key, value] of pairs) {
    const result = insertNew(map, key, fromJson(value));
    if (isFailure(result)) return result;
  }
  return map;
}

function insertNew(map: CelMap, key: unknown, value: unknown): CelMap | CelEvaluationError {
  if (mapFind(map, key) !== undefined)
    return new CelEvaluationError(`insert failed: key ${String(key)} already exists`);
  mapReplace(map, key, value);
  return map;
}
