/** The query parameters of operations: those of verbs, and those of what a pod is asked for. */
import type { Operation } from './operations.ts';

/** A query parameter. */
export interface QueryParameter {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean';
  readonly description: string;
}

const text = (name: string, description: string): QueryParameter => ({ name, type: 'string', description });
const flag = (name: string, description: string): QueryParameter => ({ name, type: 'boolean', description });
const count = (name: string, description: string): QueryParameter => ({ name, type: 'integer', description });

const PRETTY = text('pretty', 'true: the answer is indented');

const LIST: readonly QueryParameter[] = [
  flag('allowWatchBookmarks', 'send BOOKMARK events while watching'),
  text('continue', 'the token of the page before'),
  text('fieldSelector', 'restrict the list of returned objects to those whose fields match'),
  text('labelSelector', 'restrict to objects whose labels match'),
  count('limit', 'the most objects that one page may hold'),
  PRETTY,
  text('resourceVersion', 'how recent the answer must be'),
  text('resourceVersionMatch', 'how resourceVersion is meant: Exact or NotOlderThan'),
  flag('sendInitialEvents', 'begin a watch with the objects that exist'),
  count('timeoutSeconds', 'how long the call may last'),
  flag('watch', 'Watch for changes to the described resources: send them as they happen'),
];

const WRITE: readonly QueryParameter[] = [
  text('dryRun', 'All: run every step and store nothing'),
  text('fieldManager', 'the name of who makes this change'),
  text('fieldValidation', 'what happens to unknown and duplicate fields: Ignore, Warn or Strict'),
  PRETTY,
];

const DELETE: readonly QueryParameter[] = [
  text('dryRun', 'All: run every step and store nothing'),
  count('gracePeriodSeconds', 'how long the object may take to end'),
  flag('orphanDependents', 'deprecated: use propagationPolicy'),
  PRETTY,
  text('propagationPolicy', 'what happens to dependents: Orphan, Background or Foreground'),
];

const FORCE = flag('force', 'take over fields that others own (apply only)');

const STREAMS: readonly QueryParameter[] = [
  text('container', 'the container; may be left out where there is one only'),
  flag('stderr', 'the error output is wanted'),
  flag('stdin', 'input will be sent'),
  flag('stdout', 'the output is wanted'),
  flag('tty', 'with a terminal'),
];

const OF_SUBRESOURCES: Readonly<Record<string, readonly QueryParameter[]>> = {
  attach: STREAMS,
  exec: [text('command', 'the program and its arguments, one word each'), ...STREAMS],
  log: [
    text('container', 'the container; may be left out where there is one only'),
    flag('follow', 'go on as lines are written'),
    flag('insecureSkipTLSVerifyBackend', 'do not check the certificate of the node'),
    count('limitBytes', 'the most bytes that are sent'),
    PRETTY,
    flag('previous', 'of the container before this one'),
    count('sinceSeconds', 'no lines older than that'),
    text('stream', 'All, Stdout or Stderr'),
    count('tailLines', 'the last lines only, so many'),
    flag('timestamps', 'each line begins with its time'),
  ],
  portforward: [count('ports', 'the ports, when a WebSocket is used')],
  proxy: [text('path', 'the path on the other side')],
};

/** The query parameters of an operation. */
export function queryParameters({ action, subresource }: Operation): readonly QueryParameter[] {
  const own = subresource === undefined ? undefined : OF_SUBRESOURCES[subresource];
  if (own !== undefined) return own;
  switch (action) {
    case 'list':
    case 'watch':
    case 'watchlist':
      return LIST;
    case 'deletecollection':
      return DELETE_COLLECTION;
    case 'delete':
      return DELETE;
    case 'post':
    case 'put':
      return WRITE;
    case 'patch':
      return PATCH;
    case 'get':
      return READ;
    case 'connect':
      return [];
  }
}

const READ = [PRETTY];
const PATCH = [...WRITE, FORCE];
const ONLY_WATCH = new Set(['watch', 'allowWatchBookmarks', 'pretty']);
const DELETE_COLLECTION = [...DELETE, ...LIST.filter(({ name }) => !ONLY_WATCH.has(name))];
