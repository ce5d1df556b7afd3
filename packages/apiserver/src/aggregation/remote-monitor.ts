/**
 * Looks after the remote APIs: probes each one when its APIService, Service or endpoints change and every half minute
 * besides, writes its availability to the object's status, and keeps the documents of those that answer. A far end that
 * stops answering keeps its last documents, marked stale.
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime } from '@coracle/apimachinery/meta/object';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Change, ObjectStore, StoredObject } from '../cache/object-store.ts';
import { withCondition } from '../kinds/custom/crd.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { API_SERVICES, type ApiServiceIndex, type ApiServiceObject, type RemoteApi } from './api-service-index.ts';
import { type Availability, probeAvailability, serviceAvailability } from './availability.ts';
import { fetchRemoteDocuments, type RemoteDocuments } from './remote-documents.ts';

const RESYNC_MS = 30_000;
/** Documents of a far end that answers are read anew this often. */
const REFRESH_MS = 60_000;
const PROBE_TIMEOUT_MS = 5000;
/** After a failed probe: the first wait, doubled each time up to the resync. */
const FIRST_RETRY_MS = 250;

interface RemoteState {
  /** Undefined until the far end has answered once. */
  readonly documents: RemoteDocuments | undefined;
  /** The last attempt failed. */
  readonly stale: boolean;
}

interface RemoteMonitorOptions {
  readonly store: ObjectStore;
  readonly index: ApiServiceIndex;
  readonly connect: ConnectOutbound;
  readonly clock: Clock;
  readonly log: Logger;
}

const UNKNOWN: RemoteState = { documents: undefined, stale: true };

/** One remote API that is looked after. */
const newSubject = (remote: RemoteApi) => ({
  remote,
  state: UNKNOWN,
  failures: 0,
  /** When its documents were read, by the monotonic clock; 0 = they have to be read again. */
  readAt: 0,
  running: false,
  again: false,
  cancel: (): void => {},
});
type Subject = ReturnType<typeof newSubject>;

/** Starts to look. */
export function monitorRemotes(options: RemoteMonitorOptions) {
  const { store, index, clock, log } = options;
  const subjects = new Map<string, Subject>();
  const stopped = new AbortController();
  let generation = 0;

  const look = async (subject: Subject): Promise<void> => {
    subject.cancel();
    if (stopped.signal.aborted) return;
    if (subject.running) {
      subject.again = true;
      return;
    }
    subject.running = true;
    try {
      do {
        subject.again = false;
        const availability = await probe(options, subject.remote, stopped.signal);
        const isThere = availability.status === 'True';
        subject.failures = isThere ? 0 : subject.failures + 1;
        const state = isThere ? await refresh(options, subject, stopped.signal) : { ...subject.state, stale: true };
        if (state !== subject.state && !deepEqual(state, subject.state)) generation++;
        subject.state = state;
        await writeAvailability(options, subject.remote, availability);
      } while (subject.again && !stopped.signal.aborted);
    } catch (error) {
      if (!stopped.signal.aborted)
        log.warn('remote API cannot be checked', { name: subject.remote.name, error: String(error) });
    } finally {
      subject.running = false;
    }
    if (stopped.signal.aborted || subjects.get(subject.remote.name) !== subject) return;
    const wait = subject.failures === 0 ? RESYNC_MS : Math.min(RESYNC_MS, FIRST_RETRY_MS * 2 ** (subject.failures - 1));
    subject.cancel = clock.schedule(wait, () => void look(subject));
  };

  const follow = (): void => {
    const names = new Set<string>();
    for (const remote of index.remotes) {
      names.add(remote.name);
      const known = subjects.get(remote.name);
      const moved = !known || !sameServer(known.remote, remote);
      const subject = known ?? newSubject(remote);
      subject.remote = remote;
      subjects.set(remote.name, subject);
      if (moved) {
        subject.readAt = 0;
        void look(subject);
      }
    }
    for (const [name, subject] of subjects) {
      if (names.has(name)) continue;
      subject.cancel();
      subjects.delete(name);
      generation++;
    }
  };
  follow();

  /** Looks at the remote APIs behind the Services that changes are about. */
  const behind =
    (serviceOf: (changed: StoredObject) => string | undefined) =>
    (changes: readonly Change[]): void => {
      if (subjects.size === 0) return;
      const touched = new Set(changes.map(({ current }) => `${current.namespace}/${serviceOf(current)}`));
      for (const subject of subjects.values()) {
        const { namespace, name } = subject.remote.service;
        if (touched.has(`${namespace}/${name}`)) void look(subject);
      }
    };
  const byName = behind(({ name }) => name);
  const bySlice = behind(({ object }) => object.metadata.labels?.['kubernetes.io/service-name']);
  const now = store.revision();
  const watches = [
    store.watch('/services', now, byName),
    store.watch('/endpoints', now, byName),
    store.watch('discovery.k8s.io/endpointslices', now, bySlice),
  ];
  const unsubscribe = index.onChange(follow);

  return {
    stateOf: (remote: RemoteApi): RemoteState => subjects.get(remote.name)?.state ?? UNKNOWN,
    /** Grows when documents change or become stale. */
    generation: () => generation,
    stop() {
      stopped.abort(new Error('the server stops'));
      unsubscribe();
      for (const watch of watches) watch.stop();
      for (const subject of subjects.values()) subject.cancel();
    },
  };
}

const sameServer = (a: RemoteApi, b: RemoteApi): boolean =>
  deepEqual({ ...a, available: true }, { ...b, available: true });

/** A signal that fires when a probe has taken too long, or with `signal`. */
function withinProbe(clock: Clock, signal: AbortSignal): { readonly signal: AbortSignal } & Disposable {
  const late = new AbortController();
  const cancel = clock.schedule(PROBE_TIMEOUT_MS, () =>
    late.abort(new Error('context deadline exceeded (Client.Timeout exceeded while awaiting headers)')),
  );
  return { signal: AbortSignal.any([signal, late.signal]), [Symbol.dispose]: cancel };
}

async function probe(
  { store, connect, clock }: RemoteMonitorOptions,
  remote: RemoteApi,
  signal: AbortSignal,
): Promise<Availability> {
  const early = serviceAvailability(store, remote);
  if (early) return early;
  // As upstream: whether the far end is there is no secret, so its certificate is not checked here.
  const { caBundle: _, ...target } = remote.target;
  const handler = connect({ ...target, insecureSkipTlsVerify: true });
  using limit = withinProbe(clock, signal);
  return await probeAvailability(store, { remote, handler, signal: limit.signal });
}

/** The state of one that answers. */
async function refresh(
  { connect, clock, log }: RemoteMonitorOptions,
  subject: Subject,
  signal: AbortSignal,
): Promise<RemoteState> {
  const { remote, state } = subject;
  const now = clock.monotonic();
  if (!state.stale && subject.readAt > 0 && now - subject.readAt < REFRESH_MS) return state;
  using limit = withinProbe(clock, signal);
  try {
    const documents = await fetchRemoteDocuments({ remote, handler: connect(remote.target), signal: limit.signal });
    // What there was no time for is asked for again with the next look.
    subject.readAt = limit.signal.aborted ? 0 : Math.max(now, 1);
    return { documents, stale: false };
  } catch (error) {
    if (!signal.aborted) log.warn('discovery of a remote API failed', { name: remote.name, error: String(error) });
    return { ...state, stale: true };
  }
}

/** Sets the condition `Available`; writes only what differs. */
async function writeAvailability(
  { store, clock }: RemoteMonitorOptions,
  remote: RemoteApi,
  availability: Availability,
): Promise<void> {
  await store.write({ prefix: API_SERVICES, namespace: '', name: remote.name }, (current) => {
    // Gone or handed to another server meanwhile: the next look says what is true of that.
    if (!current || !(current.object as ApiServiceObject).spec.service) return { type: 'keep' };
    const next = cloneJson(current.object) as ApiServiceObject;
    const held = next.status?.conditions ?? [];
    const conditions = withCondition(held, { type: 'Available', ...availability }, formatTime(clock.now()));
    if (deepEqual(conditions, held)) return { type: 'keep' };
    next.status = { ...next.status, conditions };
    return { type: 'put', object: next };
  });
}
