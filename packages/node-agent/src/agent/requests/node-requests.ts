/**
 * The kubelet's paths about the node itself that this node answers through the API server (`nodes/{name}/proxy/...`):
 * health, its Pods, figures. All are read-only, and all there is; what else the agent serves is not reached this way.
 */

import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import { familyText, type MetricFamily } from '@coracle/runtime/metrics/metric-family';
import { type MeasuredPod, measure, resourceMetrics, summaryOf } from './node-summary.ts';
import { PROXIED_HEADER, PROXY_PATH_HEADER } from './pod-proxy.ts';

export interface NodeRequestOptions {
  readonly nodeName: string;
  /** Where the guests' files are. */
  readonly dataDir: string;
  /** The Pods bound to this node. */
  readonly pods: () => readonly MeasuredPod[];
  readonly metrics: () => Promise<readonly MetricFamily[]>;
  readonly clock: Clock;
}

/** The agent's own path for all of them: the one that was asked is in a header. */
const PATH = '/nodeProxy';
const KUBELET_PATH = /^\/(?:healthz|pods|metrics\/resource|stats)(?:\/|$)/;
/** As kubelet has them, in order. */
const CHECKS = ['ping', 'log', 'syncloop'];

/** Answers a request about the node; undefined when the path is not ours. */
export function nodeRequest(options: NodeRequestOptions, request: ApiRequest): Promise<ApiResponse> | undefined {
  if (request.path === PATH) return answer(options, request, request.headers[PROXY_PATH_HEADER] ?? '');
  // Another make of API server asks for the page itself, as it asks a kubelet.
  return KUBELET_PATH.test(request.path) ? answer(options, request, request.path) : undefined;
}

async function answer(options: NodeRequestOptions, request: ApiRequest, asked: string): Promise<ApiResponse> {
  // A slash at the end leads to the same page.
  const path = asked.replace(/(?<=.)\/$/, '');
  const page = pageOf(options, path, new URLSearchParams(request.query));
  if (!page) return plain(404, '404 page not found\n');
  if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, '405: Method Not Allowed');
  return page();
}

function pageOf(
  options: NodeRequestOptions,
  path: string,
  query: URLSearchParams,
): (() => ApiResponse | Promise<ApiResponse>) | undefined {
  const measured = () => {
    const { nodeName, dataDir, pods, clock } = options;
    return measure({ nodeName, directory: dataDir, pods: pods(), now: clock.now() });
  };
  switch (path) {
    case '/healthz':
      return () => plain(200, query.has('verbose') ? verboseHealth() : 'ok');
    case '/pods':
      return () => answered(200, 'application/json', podList(options.pods().map(({ pod }) => pod)));
    case '/metrics':
      return async () => answered(200, METRICS_TYPE, metricsText(await options.metrics()));
    case '/metrics/resource':
      return async () => answered(200, METRICS_TYPE, metricsText(resourceMetrics(await measured())));
    case '/stats/summary': {
      const withDisks = query.get('only_cpu_and_memory') !== 'true';
      return async () =>
        answered(200, 'application/json', JSON.stringify(summaryOf(await measured(), { withDisks }), null, 1));
    }
    default:
      return CHECKS.some((check) => path === `/healthz/${check}`) ? () => plain(200, 'ok') : undefined;
  }
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const metricsText = (families: readonly MetricFamily[]): string => families.map(familyText).join('');

const verboseHealth = (): string => `${CHECKS.map((check) => `[+]${check} ok\n`).join('')}healthz check passed\n`;

/** Items of a list of this kind do not say what they are. */
function podList(pods: readonly ReadonlyPod[]): string {
  const items = pods.map(({ kind: _kind, apiVersion: _version, ...pod }) => pod);
  return JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata: {}, items });
}

const plain = (status: number, text: string): ApiResponse => {
  const { headers, body } = answered(status, 'text/plain; charset=utf-8', text);
  return { status, headers: { ...headers, 'x-content-type-options': 'nosniff' }, body: body as Uint8Array };
};

const answered = (status: number, type: string, text: string): ApiResponse => ({
  status,
  headers: { 'content-type': type, [PROXIED_HEADER]: 'true' },
  body: new TextEncoder().encode(text),
});
