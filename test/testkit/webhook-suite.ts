/** A server and the webhooks it asks, for a whole test file: every test begins without configurations and ConfigMaps. */
import { after, before, beforeEach } from 'node:test';
import type { ConnectOutbound } from '../../packages/apiserver/src/outbound/outbound.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { createAdmissionRecorder } from './admission-recorder.ts';
import { type Answer, type InProcessServer, startServer } from './in-process-server.ts';
import { startWebhookServer, type WebhookServer } from './webhook-server.ts';

/** Where webhooks are configured. */
export const GROUP = '/apis/admissionregistration.k8s.io/v1';
/** What they are asked about, unless a test says otherwise. */
export const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';
export const RULE = {
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: ['configmaps'],
  operations: ['CREATE', 'UPDATE'],
};

export interface HookOptions {
  readonly path?: string;
  readonly client?: object;
  [field: string]: unknown;
}

export interface WebhookSuite {
  readonly server: InProcessServer;
  readonly hooks: WebhookServer;
  readonly connect: ConnectOutbound;
  /** What admission noted for the audit log in this test. */
  readonly annotations: ReadonlyMap<string, string>;
  /** One webhook of a configuration; it is named after its path. */
  webhook(options: HookOptions): object;
  configure(kind: 'Mutating' | 'Validating', name: string, ...webhooks: HookOptions[]): Promise<void>;
  /** Creates a ConfigMap. */
  post(body?: object, query?: string): Promise<Answer>;
}

export const configMap = (name = 'one', more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { a: 'b' },
  ...more,
});

/** Starts both before the tests of the file, and stops them after; `answers` maps paths to what webhooks say. */
export function webhookSuite(answers: Parameters<typeof startWebhookServer>[0]): WebhookSuite {
  let server: InProcessServer;
  let hooks: WebhookServer;
  let outbound: ReturnType<typeof createOutbound>;
  const recorder = createAdmissionRecorder();

  before(async () => {
    hooks = await startWebhookServer(answers, ['localhost', 'hook.default.svc']);
    outbound = createOutbound({
      store: { get: (key) => server.store.get(key), list: (...args) => server.store.list(...args) },
    });
    server = await startServer({ connectOutbound: outbound.connect, admission: [recorder.plugin] });
  });
  after(async () => {
    await server.stop();
    outbound.close();
    await hooks.close();
  });
  beforeEach(async () => {
    hooks.calls.length = 0;
    recorder.annotations.clear();
    for (const kind of ['mutating', 'validating'])
      await server.request('DELETE', `${GROUP}/${kind}webhookconfigurations`);
    await server.request('DELETE', CONFIGMAPS);
  });

  const webhook = ({ path = '/allow', client, ...more }: HookOptions): object => ({
    name: `${path.slice(1)}.example.com`,
    clientConfig: client ?? { url: hooks.url(path), caBundle: hooks.caBundle },
    rules: [RULE],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    ...more,
  });
  return {
    get server() {
      return server;
    },
    get hooks() {
      return hooks;
    },
    get connect() {
      return outbound.connect;
    },
    annotations: recorder.annotations,
    webhook,
    async configure(kind, name, ...webhooks) {
      await server.create(`${GROUP}/${kind.toLowerCase()}webhookconfigurations`, {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: `${kind}WebhookConfiguration`,
        metadata: { name },
        webhooks: webhooks.map(webhook),
      });
    },
    post: (body = configMap(), query = '') => server.request('POST', `${CONFIGMAPS}${query}`, { body }),
  };
}
