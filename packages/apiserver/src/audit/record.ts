/** The audit events of one request: what is known at each stage, in upstream's fields and order. */
import { formatMicroTime } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ApiRequest } from '@coracle/runtime/http/seam';
import type { UserInfo } from '../auth/identity.ts';
import type { RequestInfo } from '../endpoints/request-info.ts';
import type { AuditDecision, AuditStage } from './policy.ts';

type Json = Record<string, unknown>;

/** A request as far as it is known when its record begins. */
export interface AuditStart {
  readonly auditId: string;
  readonly request: ApiRequest;
  /** Absent when authentication failed. */
  readonly user: UserInfo | undefined;
  readonly receivedAt: number;
  readonly info: Omit<RequestInfo, 'parts'>;
  /** The request body as a value; undefined when it does not parse. */
  readonly readBody: () => unknown;
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

const MAX_USER_AGENT = 1024;

export class AuditRecord {
  readonly #start: AuditStart;
  readonly #decision: AuditDecision;
  /** Undefined for what is no resource. */
  readonly #objectRef: Json | undefined;
  readonly #out: { readonly now: () => number; readonly write: (event: Json) => void };

  constructor(start: AuditStart, decision: AuditDecision, out: { now: () => number; write: (event: Json) => void }) {
    this.#start = start;
    this.#decision = decision;
    this.#objectRef = objectRefOf(start.info);
    this.#out = out;
  }

  get wantsResponse(): boolean {
    return this.#decision.level === 'RequestResponse';
  }

  /**
   * Writes the event of a stage, with what became of the request where that is known. Of a body that may take for ever
   * there are two: ResponseStarted when the headers are out, which is the only one where authentication failed.
   */
  write(stage: AuditStage, end?: RecordEnd): void {
    const { omitStages, level } = this.#decision;
    if (omitStages.has(stage)) return;
    const { auditId, request, info, user, receivedAt } = this.#start;
    const { impersonatedUser, annotations, ...rest } = end ? this.#ending(end) : {};
    this.#out.write({
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level,
      auditID: auditId,
      stage,
      requestURI: request.query === '' ? request.path : `${request.path}?${request.query}`,
      verb: info.verb,
      user: user ? userJson(user) : {},
      ...(impersonatedUser !== undefined && { impersonatedUser }),
      sourceIPs: sourceAddresses(request),
      ...(request.headers['user-agent'] && { userAgent: request.headers['user-agent'].slice(0, MAX_USER_AGENT) }),
      ...(this.#objectRef && { objectRef: this.#objectRef }),
      ...rest,
      requestReceivedTimestamp: formatMicroTime(receivedAt),
      stageTimestamp: formatMicroTime(this.#out.now()),
      ...(annotations !== undefined && { annotations }),
    });
  }

  #ending({ code, responseBody, impersonatedUser, ...end }: RecordEnd): Json {
    const { level, omitManagedFields } = this.#decision;
    const objectRef = this.#objectRef;
    const isCreate = this.#start.info.verb === 'create';
    const contents = level === 'Request' || level === 'RequestResponse';
    const annotations = new Map([...(end.annotations ?? []), ...((contents && end.annotationDetails) || [])]);
    const body = objectRef && (contents || isCreate) ? this.#start.readBody() : undefined;
    if (isCreate && objectRef) nameFrom(body, objectRef);
    const shown = (value: unknown): unknown => (omitManagedFields ? withoutManagedFields(value) : value);
    return {
      ...(impersonatedUser && { impersonatedUser: userJson(impersonatedUser) }),
      responseStatus: statusJson(code, responseBody, objectRef?.['resource'] === 'secrets' && !contents),
      ...(contents && body !== undefined && { requestObject: shown(body) }),
      ...(this.wantsResponse && objectRef && responseBody !== undefined && { responseObject: shown(responseBody) }),
      ...(annotations.size > 0 && { annotations: Object.fromEntries(annotations) }),
    };
  }
}

function objectRefOf(info: AuditStart['info']): Json | undefined {
  if (!info.isResource) return undefined;
  const { resource, namespace, name, group, version, subresource } = info;
  return {
    resource,
    ...(namespace !== '' && { namespace }),
    ...(name !== '' && { name }),
    ...(group !== '' && { apiGroup: group }),
    apiVersion: version,
    ...(subresource !== '' && { subresource }),
  };
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
