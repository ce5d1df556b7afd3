/**
 * Macros over lists and maps as loops. The cost of a turn is that of the accumulator cel-go spells out: reading it,
 * testing it, and joining the next value to it; the empty one that it starts with costs nothing.
 */
import type { Code, Compiler, Frame } from './compile.ts';
import { spend } from './compile.ts';
import { evaluationError } from './compile-call.ts';
import { LIST_COST } from './cost-models.ts';
import { CelEvaluationError, noOverload } from './errors.ts';
import { mapFind, mapInsert } from './map-access.ts';
import type { Fold } from './syntax.ts';
import { CelMap, fromJson, isPlainObject, runtimeTypeName } from './values.ts';

/** Sets the names of a turn; false after the last. */
type Turns = (frame: Frame, turn: () => boolean) => void;

export function compileFold(compiler: Compiler, expr: Fold): Code {
  const range = compiler.compile(expr.range);
  const type = expr.range.type;
  const wrap = type?.kind === 'list' ? type.params[0]?.wrap : type?.kind === 'map' ? type.params[1]?.wrap : undefined;
  return compiler.withLocals([...expr.names], false, (slots) => {
    const test = expr.test === undefined ? undefined : compiler.compile(expr.test);
    const body = expr.body === undefined ? undefined : compiler.compile(expr.body);
    const turns = loop(range, slots, wrap ?? fromJson);
    switch (expr.kind) {
      case 'all':
        return quantifier(turns, test!, false);
      case 'exists':
        return quantifier(turns, test!, true);
      case 'existsOne':
        return exactlyOne(turns, test!);
      case 'filter':
        return collect(turns, test, (frame) => frame.values[slots[0]!], true);
      case 'map':
      case 'transformList':
        return collect(turns, test, body!, false);
      case 'transformMap':
        return collectMap(turns, test, (frame, map) => {
          mapInsert(map, frame.values[slots[0]!], body!(frame));
          spend(frame, 1);
        });
      case 'transformMapEntry':
        return collectMap(turns, test, (frame, map) => insertAll(map, body!(frame)));
    }
  });
}

/** Runs a turn for each element: of a list the item (or index and item), of a map the key (or key and value). */
function loop(range: Code, slots: readonly number[], wrap: (raw: unknown) => unknown): Turns {
  const [first, second] = slots;
  return (frame, turn) => {
    const target = range(frame);
    const { values } = frame;
    if (Array.isArray(target)) {
      for (let i = 0; i < target.length; i++) {
        if (second === undefined) values[first!] = wrap(target[i]);
        else {
          values[first!] = i;
          values[second] = wrap(target[i]);
        }
        if (!turn()) return;
      }
    } else if (isPlainObject(target)) {
      for (const key of Object.keys(target)) {
        values[first!] = key;
        if (second !== undefined) values[second] = wrap(target[key]);
        if (!turn()) return;
      }
    } else if (target instanceof CelMap) {
      for (const [key, value] of target.entries.values()) {
        values[first!] = key;
        if (second !== undefined) values[second] = value;
        if (!turn()) return;
      }
    } else {
      throw notIterable(target);
    }
  };
}

/** As Go names the types that have no elements. */
const GO_NAMES: Readonly<Record<string, string>> = {
  null_type: 'types.Null',
  bool: 'types.Bool',
  int: 'types.Int',
  uint: 'types.Uint',
  double: 'types.Double',
  string: 'types.String',
  bytes: 'types.Bytes',
  'google.protobuf.Timestamp': 'types.Timestamp',
  'google.protobuf.Duration': 'types.Duration',
};

function notIterable(value: unknown): CelEvaluationError {
  const name = GO_NAMES[runtimeTypeName(value)];
  return name === undefined ? noOverload() : new CelEvaluationError(`got '${name}', expected iterable type`);
}

/** `all` and `exists`: the first decisive element ends it; an error counts only when none is decisive. */
function quantifier(turns: Turns, test: Code, decisive: boolean): Code {
  // `exists` negates the accumulator before each turn.
  const turnCost = decisive ? 4 : 3;
  return (frame) => {
    let failure: CelEvaluationError | undefined;
    let decided = false;
    turns(frame, () => {
      // That it is decided shows before the next turn, which is no turn then: the accumulator is looked at once more.
      if (decided) {
        spend(frame, turnCost - 1);
        return false;
      }
      spend(frame, turnCost);
      try {
        const value = test(frame);
        if (value === decisive) decided = true;
        else if (typeof value !== 'boolean') failure ??= noOverload();
      } catch (error) {
        failure ??= evaluationError(error);
      }
      return true;
    });
    frame.cost += 1;
    if (decided) return decisive;
    if (failure !== undefined) throw failure;
    return !decisive;
  };
}

function exactlyOne(turns: Turns, test: Code): Code {
  return (frame) => {
    let count = 0;
    turns(frame, () => {
      const value = test(frame);
      if (typeof value !== 'boolean') throw noOverload();
      if (value) count++;
      if (value) spend(frame, 2);
      return true;
    });
    frame.cost += 2;
    return count === 1;
  };
}

/** Whether the element of this turn passes; one that does not costs its test only. */
function isKept(test: Code, frame: Frame): boolean {
  const kept = test(frame);
  if (typeof kept !== 'boolean') throw noOverload();
  return kept;
}

function collect(turns: Turns, test: Code | undefined, body: Code, names: boolean): Code {
  return (frame) => {
    const list: unknown[] = [];
    turns(frame, () => {
      if (test !== undefined && !isKept(test, frame)) return true;
      list.push(body(frame));
      // The accumulator, the list of one, the joining; `filter` also reads the element.
      spend(frame, LIST_COST + 2 + (names ? 1 : 0));
      return true;
    });
    frame.cost += 1;
    return list;
  };
}

function collectMap(turns: Turns, test: Code | undefined, insert: (frame: Frame, map: CelMap) => void): Code {
  return (frame) => {
    const map = new CelMap();
    turns(frame, () => {
      if (test !== undefined && !isKept(test, frame)) return true;
      insert(frame, map);
      spend(frame, 2);
      return true;
    });
    frame.cost += 1;
    return map;
  };
}

function insertAll(map: CelMap, entries: unknown): void {
  if (entries instanceof CelMap) {
    for (const [key, value] of entries.entries.values()) insertNew(map, key, value);
  } else if (isPlainObject(entries)) {
    for (const key of Object.keys(entries)) insertNew(map, key, fromJson(entries[key]));
  } else {
    throw noOverload();
  }
}

function insertNew(map: CelMap, key: unknown, value: unknown): void {
  if (mapFind(map, key) !== undefined) throw new CelEvaluationError(`insert failed: key ${String(key)} already exists`);
  mapInsert(map, key, value);
}
