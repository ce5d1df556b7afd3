/**
 * Who may ask this node as a kubelet is asked, on a cluster whose API server is not ours: that server comes with a client
 * certificate of its own, and may what the cluster says it may (a kubelet's webhook authorisation). What is asked for is
 * the subresource of the Node that a kubelet would name: `stats`, `metrics`, `log`, else `proxy`.
 */

import type { ApiRequest } from '@coracle/runtime/http/seam';
import type { AgentConfig } from '../agent-options.ts';

const PATH = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
const VERBS: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
const SUBRESOURCES: readonly (readonly [string, string])[] = [
  ['/stats', 'stats'],
  ['/metrics', 'metrics'],
  ['/logs', 'log'],
];
/** As a kubelet's: what is allowed may be taken back, what is refused may be granted. */
const ALLOWED_MS = 300_000;
const REFUSED_MS = 30_000;
/** Answers that are kept; the oldest goes first. */
const MAX_KEPT = 256;

/** Asks the cluster, and remembers its answers for a while. What cannot be asked is refused. */
export function createServerAccess({
  client,
  nodeName,
  clock,
  log,
}: Pick<AgentConfig, 'client' | 'nodeName' | 'clock' | 'log'>): (request: ApiRequest) => Promise<boolean> {
  const kept = new Map<string, { readonly allowed: boolean; readonly until: number }>();
  return async ({ method, path, peer, signal }) => {
    const { certificate } = peer;
    if (certificate?.verified !== true || certificate.commonName === '') return false;
    const [, subresource = 'proxy'] = SUBRESOURCES.find(([root]) => path === root || path.startsWith(`${root}/`)) ?? [];
    const spec = {
      user: certificate.commonName,
      groups: [...certificate.organizations, 'system:authenticated'],
      resourceAttributes: {
        verb: VERBS[method] ?? 'get',
        version: 'v1',
        resource: 'nodes',
        subresource,
        name: nodeName,
      },
    };
    const key = JSON.stringify(spec);
    const known = kept.get(key);
    if (known && known.until > clock.monotonic()) return known.allowed;
    try {
      const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', metadata: {}, spec };
      const answer = (await client.raw('POST', PATH, { body: review, signal })) as { status?: { allowed?: boolean } };
      const allowed = answer.status?.allowed === true;
      kept.delete(key);
      kept.set(key, { allowed, until: clock.monotonic() + (allowed ? ALLOWED_MS : REFUSED_MS) });
      for (const oldest of kept.keys()) {
        if (kept.size <= MAX_KEPT) break;
        kept.delete(oldest);
      }
      return allowed;
    } catch (error) {
      log.warn('cannot ask who may call this node', { user: spec.user, error: (error as Error).message });
      return false;
    }
  };
}
