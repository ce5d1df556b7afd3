/**
 * The list/watch protocol as a state machine: `step(state, input)` says what the store must take over and what to do
 * next; sockets and timers live in `informer.ts`.
 *
 * | state     | holds                              | leaves when                                                    |
 * | --------- | ---------------------------------- | -------------------------------------------------------------- |
 * | empty     | nothing valid                      | `begin`: to initial (watch-list) or listing                    |
 * | initial   | what a watch-list sent so far      | end bookmark: watching; refused: listing; broken: empty  |
 * | listing   | the pages read so far              | last page: listed; 410: listing anew; failure: empty           |
 * | listed    | the version to go on from          | watch opened: watching                                         |
 * | watching  | the version of the last event      | stream ends: listed; 410: empty                                |
 *
 * Guarantee: a live event whose version is not newer than the last one seen is dropped, so nothing older ever follows
 * something newer. On loss of anything but `watching`, what was gathered is thrown away and gathered again.
 */
import type { KubeObject, ObjectList } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isStatus } from '../api-failure.ts';
import type { WatchEvent } from '../client.ts';
import { isNotNewer } from './resource-version.ts';

/** How the whole state is fetched: as a stream of ADDED events, or by LIST where the server refuses that. */
export type InitialMode = 'watch-list' | 'list';

export type WatchState<T extends KubeObject> =
  | { readonly phase: 'empty'; readonly mode: InitialMode }
  | { readonly phase: 'initial'; readonly gathered: Map<string, T> }
  | { readonly phase: 'listing'; readonly mode: InitialMode; readonly gathered: T[] }
  | { readonly phase: 'listed'; readonly mode: InitialMode; readonly resourceVersion: string }
  | { readonly phase: 'watching'; readonly mode: InitialMode; readonly resourceVersion: string };

export type WatchInput<T extends KubeObject> =
  /** Start, or start again after a pause. */
  | { readonly type: 'begin' }
  | { readonly type: 'page'; readonly list: ObjectList<T> }
  | { readonly type: 'event'; readonly event: WatchEvent<T> }
  /** The stream ended in the ordinary way. */
  | { readonly type: 'ended' }
  /** The stream sent nothing for so long that the server cannot have understood the request. */
  | { readonly type: 'silent' }
  /** A list or watch failed, or a stream broke. */
  | { readonly type: 'failed'; readonly error: unknown };

/** What the store must take over. */
export type StoreChange<T extends KubeObject> =
  | { readonly type: 'replace'; readonly objects: Iterable<T>; readonly resourceVersion: string }
  | { readonly type: 'apply'; readonly object: T }
  | { readonly type: 'delete'; readonly object: T };

/** What the shell does next. */
export type WatchCommand =
  | { readonly type: 'list'; readonly continue?: string }
  | { readonly type: 'watch-list' }
  | { readonly type: 'watch'; readonly resourceVersion: string }
  /** Read on from the open stream. */
  | { readonly type: 'read' }
  /** Pause, longer after each failure in a row, then `begin`. */
  | { readonly type: 'back-off'; readonly error: unknown }
  /** `begin` at once. */
  | { readonly type: 'restart' };

export interface WatchStep<T extends KubeObject> {
  readonly state: WatchState<T>;
  readonly change?: StoreChange<T>;
  readonly command: WatchCommand;
}

/** Marks the bookmark that ends a watch-list's initial events. */
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** The state to begin in. */
export const initialWatchState = <T extends KubeObject>(): WatchState<T> => ({ phase: 'empty', mode: 'watch-list' });

/** One step of the machine. Pure, but for `gathered`, which the state owns and fills. */
export function stepWatch<T extends KubeObject>(state: WatchState<T>, input: WatchInput<T>): WatchStep<T> {
  switch (input.type) {
    case 'begin':
      return begin(state);
    case 'page':
      return page(state, input.list);
    case 'event':
      return onEvent(state, input.event);
    case 'ended':
      return ended(state);
    case 'silent':
      return state.phase === 'initial'
        ? { state: { phase: 'empty', mode: 'list' }, command: { type: 'restart' } }
        : ended(state);
    case 'failed':
      return failed(state, input.error);
  }
}

const modeOf = <T extends KubeObject>(state: WatchState<T>): InitialMode =>
  state.phase === 'initial' ? 'watch-list' : state.mode;

function begin<T extends KubeObject>(state: WatchState<T>): WatchStep<T> {
  if (state.phase === 'listed' || state.phase === 'watching') {
    const { mode, resourceVersion } = state;
    return { state: { phase: 'watching', mode, resourceVersion }, command: { type: 'watch', resourceVersion } };
  }
  return modeOf(state) === 'watch-list'
    ? { state: { phase: 'initial', gathered: new Map() }, command: { type: 'watch-list' } }
    : { state: { phase: 'listing', mode: 'list', gathered: [] }, command: { type: 'list' } };
}

function page<T extends KubeObject>(state: WatchState<T>, list: ObjectList<T>): WatchStep<T> {
  if (state.phase !== 'listing') return { state, command: { type: 'restart' } };
  state.gathered.push(...list.items);
  const next = list.metadata.continue;
  if (next !== undefined && next !== '') return { state, command: { type: 'list', continue: next } };
  const resourceVersion = list.metadata.resourceVersion ?? '';
  return {
    state: { phase: 'listed', mode: state.mode, resourceVersion },
    change: { type: 'replace', objects: state.gathered, resourceVersion },
    command: { type: 'restart' },
  };
}

function onEvent<T extends KubeObject>(state: WatchState<T>, event: WatchEvent<T>): WatchStep<T> {
  if (event.type === 'ERROR') return failed(state, watchError(event.object));
  if (state.phase === 'initial') return initialEvent(state, event);
  if (state.phase !== 'watching') return { state, command: { type: 'restart' } };

  const { object } = event;
  const resourceVersion = object.metadata?.resourceVersion ?? '';
  // Sent twice, or from before the point the watch was resumed at.
  if (isNotNewer(resourceVersion, state.resourceVersion)) return { state, command: { type: 'read' } };
  const next: WatchState<T> = { ...state, resourceVersion };
  switch (event.type) {
    case 'BOOKMARK':
      return { state: next, command: { type: 'read' } };
    case 'ADDED':
    case 'MODIFIED':
      return { state: next, change: { type: 'apply', object }, command: { type: 'read' } };
    case 'DELETED':
      return { state: next, change: { type: 'delete', object }, command: { type: 'read' } };
    default:
      return failed(state, new Error(`Cannot read watch: unknown event type ${JSON.stringify(event.type)}`));
  }
}

function initialEvent<T extends KubeObject>(
  state: Extract<WatchState<T>, { phase: 'initial' }>,
  event: WatchEvent<T>,
): WatchStep<T> {
  const { metadata } = event.object;
  if (event.type === 'BOOKMARK') {
    if (metadata.annotations?.[INITIAL_EVENTS_END] !== 'true') return { state, command: { type: 'read' } };
    const resourceVersion = metadata.resourceVersion ?? '';
    return {
      state: { phase: 'watching', mode: 'watch-list', resourceVersion },
      change: { type: 'replace', objects: state.gathered.values(), resourceVersion },
      command: { type: 'read' },
    };
  }
  const key = `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
  if (event.type === 'DELETED') state.gathered.delete(key);
  else state.gathered.set(key, event.object);
  return { state, command: { type: 'read' } };
}

function ended<T extends KubeObject>(state: WatchState<T>): WatchStep<T> {
  if (state.phase === 'watching' || state.phase === 'listed') {
    return { state: { ...state, phase: 'listed' }, command: { type: 'restart' } };
  }
  const error = new Error('Cannot read initial state: the stream ended before it was complete');
  return { state: { phase: 'empty', mode: modeOf(state) }, command: { type: 'back-off', error } };
}

function failed<T extends KubeObject>(state: WatchState<T>, error: unknown): WatchStep<T> {
  const code = error instanceof ApiError ? error.code : 0;
  // The version is too old, or from a server whose history is not ours any more: only the whole state helps.
  const lost = code === 410 || (code === 504 && isTooLarge(error));
  switch (state.phase) {
    case 'initial':
      // A server without watch-list says so in a way of its own (4xx, 500, 501, ...); what is wrong with the request or the
      // server itself will show in the list too.
      if (code >= 400 && code !== 401 && code !== 410 && code !== 429) {
        return { state: { phase: 'empty', mode: 'list' }, command: { type: 'restart' } };
      }
      return { state: { phase: 'empty', mode: 'watch-list' }, command: { type: 'back-off', error } };
    case 'listing':
      // A continue token that expired: the pages so far are of a snapshot that is gone.
      return { state: { phase: 'empty', mode: state.mode }, command: { type: 'back-off', error } };
    case 'watching':
    case 'listed':
      return lost
        ? { state: { phase: 'empty', mode: state.mode }, command: { type: 'restart' } }
        : { state: { ...state, phase: 'listed' }, command: { type: 'back-off', error } };
    case 'empty':
      return { state, command: { type: 'back-off', error } };
  }
}

const isTooLarge = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.status.details?.causes ?? []).some((cause) => cause.reason === 'ResourceVersionTooLarge');

const watchError = (object: unknown): Error =>
  isStatus(object)
    ? new ApiError(object)
    : new Error('Cannot read watch: the server sent an ERROR event without a Status');
