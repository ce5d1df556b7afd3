/** The audit events of one request: what is known at each stage, in upstream's fields and order. */
import { formatMicroTime } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ApiRequest } from '@coracle/runtime/http/seam';
import type { UserInfo } from '../auth/identity.ts';
import type { AuditDecision, AuditStage } from './policy.ts';

type Json = Record<string, unknown>;

/** What is fixed when the request has been authenticated. */
export interface RecordStart {
  readonly auditId: string;
  readonly request: ApiRequest;
  readonly decision: AuditDecision;
  readonly receivedAt: number;
  readonly verb: string;
  /** Absent when authentication failed. */
  readonly user: UserInfo | undefined;
  /** Absent for what is no resource. */
  readonly objectRef: Json | undefined;
}

/** What became of it. */
export interface RecordEnd {
  readonly code: number;
  /** The answer as JSON; undefined where there is none to show (a stream, another encoding). */
  readonly responseBody: unknown;
  readonly impersonatedUser: UserInfo | undefined;
  readonly annotations: ReadonlyMap<string, string> | undefined;
  /** Annotations that show something of the body: they are left out where the body is. */
  readonly annotationDetails: ReadonlyMap<string, string> | undefined;
}

export interface AuditRecordOptions {
  readonly now: () => number;
  readonly write: (event: Json) => void;
  /** The request body as a value; undefined when it does not parse. */
  readonly readBody: () => unknown;
}

const MAX_USER_AGENT = 1024;

export class AuditRecord {
  readonly #start: RecordStart;
  readonly #options: AuditRecordOptions;
  #started = false;

  constructor(start: RecordStart, options: AuditRecordOptions) {
    this.#start = start;
    this.#options = options;
  }

  get wantsResponse(): boolean {
    return this.#start.decision.level === 'RequestResponse';
  }

  received(): void {
    this.#emit('RequestReceived', {});
  }

  /** Headers are out and a body follows that may take for ever. */
  responseStarted(end: RecordEnd): void {
    this.#started = true;
    this.#emit('ResponseStarted', this.#ending(end));
  }

  responseComplete(end: RecordEnd): void {
    this.#emit('ResponseComplete', this.#ending(end));
  }

  panicked(end: RecordEnd): void {
    this.#emit('Panic', this.#ending(end));
  }

  /** Authentication failed: upstream writes one event, at the start of the response. */
  refused(end: RecordEnd): void {
    this.#emit('ResponseStarted', this.#ending(end));
  }

  #emit(stage: AuditStage, more: Json): void {
    const { decision, auditId, request, verb, user, objectRef, receivedAt } = this.#start;
    if (decision.omitStages.has(stage)) return;
    const { impersonatedUser, annotations, ...rest } = more;
    this.#options.write({
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: decision.level,
      auditID: auditId,
      stage,
      requestURI: request.query === '' ? request.path : `${request.path}?${request.query}`,
      verb,
      user: user ? userJson(user) : {},
      ...(impersonatedUser !== undefined && { impersonatedUser }),
      sourceIPs: sourceAddresses(request),
      ...(request.headers['user-agent'] && { userAgent: request.headers['user-agent'].slice(0, MAX_USER_AGENT) }),
      ...(objectRef && { objectRef }),
      ...rest,
      requestReceivedTimestamp: formatMicroTime(receivedAt),
      stageTimestamp: formatMicroTime(this.#options.now()),
      ...(annotations !== undefined && { annotations }),
    });
  }

  #ending({ code, responseBody, impersonatedUser, ...end }: RecordEnd): Json {
    const { decision, verb, objectRef } = this.#start;
    const contents = decision.level === 'Request' || decision.level === 'RequestResponse';
    const annotations = new Map([...(end.annotations ?? []), ...((contents && end.annotationDetails) || [])]);
    const body = objectRef && (contents || verb === 'create') ? this.#options.readBody() : undefined;
    if (verb === 'create' && objectRef) nameFrom(body, objectRef);
    const shown = (value: unknown): unknown => (decision.omitManagedFields ? withoutManagedFields(value) : value);
    return {
      ...(impersonatedUser && { impersonatedUser: userJson(impersonatedUser) }),
      responseStatus: statusJson(code, responseBody, objectRef?.['resource'] === 'secrets' && !contents),
      ...(contents && body !== undefined && { requestObject: shown(body) }),
      ...(this.wantsResponse && objectRef && responseBody !== undefined && !this.#started
        ? { responseObject: shown(responseBody) }
        : {}),
      ...(annotations.size > 0 && { annotations: Object.fromEntries(annotations) }),
    };
  }
}

const userJson = ({ username, uid, groups, extra }: UserInfo): Json => ({
  username,
  ...(uid && { uid }),
  groups: [...groups],
  ...(extra && { extra }),
});

/** What proxies say stands first and may be made up; the connection's own address is last. */
function sourceAddresses({ headers, peer }: ApiRequest): string[] {
  const reported = (headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '' && one.length < 64);
  const own = peer.address === '' ? '127.0.0.1' : peer.address.replace(/^::ffff:/, '');
  return reported.at(-1) === own ? reported : [...reported, own];
}

/** The URL of a create has no name; its body may. */
function nameFrom(body: unknown, objectRef: Json): void {
  const metadata = isJsonObject(body) && isJsonObject(body['metadata']) ? body['metadata'] : {};
  for (const field of ['namespace', 'name', 'uid'])
    if (!objectRef[field] && typeof metadata[field] === 'string' && metadata[field] !== '')
      objectRef[field] = metadata[field];
}

/** `quiet` leaves out the words: those about a bad Secret quote what was in it. Upstream writes them. */
function statusJson(code: number, body: unknown, quiet: boolean): Json {
  if (!isJsonObject(body) || body['kind'] !== 'Status') return { metadata: {}, code };
  const { status, message, reason, details } = body;
  return {
    metadata: {},
    ...(status !== undefined && { status }),
    ...(message !== undefined && !quiet && { message }),
    ...(reason !== undefined && { reason }),
    ...(details !== undefined && !quiet && { details }),
    code,
  };
}

function withoutManagedFields(value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  const next: Json = { ...value };
  if (isJsonObject(next['metadata'])) {
    const { managedFields: _dropped, ...kept } = next['metadata'];
    next['metadata'] = kept;
  }
  if (Array.isArray(next['items'])) next['items'] = next['items'].map(withoutManagedFields);
  return next;
}
