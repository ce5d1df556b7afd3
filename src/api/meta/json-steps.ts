/** Writing JSON in steps: what JSON.stringify says, with others served in between. */
import type { Steps } from './steps.ts';

/** Members and items between two stops. */
const SLICE = 2000;
/** Below this, what is left is written in one go: objects nest further, but not large ones. */
const MAX_DEPTH = 12;
/** What nobody has to look into. */
const SMALL = 8;

/** The text JSON.stringify makes of a JSON value, which must not be undefined. */
export function* stringifySteps(value: unknown): Steps<string> {
  const state = { parts: [] as string[], count: 0 };
  yield* write(value, 0, state);
  // Joined in two stages: one join of a million parts is a long step itself.
  const chunks: string[] = [];
  for (let at = 0; at < state.parts.length; at += SLICE * 10) {
    chunks.push(state.parts.slice(at, at + SLICE * 10).join(''));
    yield;
  }
  return chunks.join('');
}

interface State {
  readonly parts: string[];
  count: number;
}

function* write(value: unknown, depth: number, state: State): Steps<void> {
  const { parts } = state;
  if (typeof value !== 'object' || value === null || depth === MAX_DEPTH) {
    parts.push(JSON.stringify(value) ?? 'null');
    return;
  }
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const item: unknown = value[at];
      const separator = at === 0 ? '[' : ',';
      if (isSmall(item)) {
        parts.push(`${separator}${JSON.stringify(item) ?? 'null'}`);
      } else {
        parts.push(separator);
        yield* write(item, depth + 1, state);
      }
      if (++state.count % SLICE === 0) yield;
    }
    parts.push(value.length === 0 ? '[]' : ']');
    return;
  }
  const object = value as Record<string, unknown>;
  const keys = Object.keys(object);
  // Naming the members of a large one is a step of its own.
  if (keys.length > SLICE) yield;
  let separator = '{';
  for (const key of keys) {
    const member = object[key];
    if (member === undefined) continue;
    if (isSmall(member)) {
      parts.push(`${separator}${JSON.stringify(key)}:${JSON.stringify(member)}`);
    } else {
      parts.push(`${separator}${JSON.stringify(key)}:`);
      yield* write(member, depth + 1, state);
    }
    separator = ',';
    if (++state.count % SLICE === 0) yield;
  }
  parts.push(separator === '{' ? '{}' : '}');
}

/** Texts, numbers, and lists and objects of a few of them. */
function isSmall(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.length <= SMALL && !value.some(isContainer);
  let members = 0;
  for (const key in value) {
    if (++members > SMALL || isContainer((value as Record<string, unknown>)[key])) return false;
  }
  return true;
}

const isContainer = (value: unknown): boolean => typeof value === 'object' && value !== null;
