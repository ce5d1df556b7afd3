/**
 * Tells the API server of an external cluster to ask our webhook about deletions: keeps the
 * ValidatingWebhookConfiguration, with the address and the authority of the process that runs now.
 *
 * Two webhooks in it. About what machines refer to it may be away: a ValidatingAdmissionPolicy is the net (`parts-policy`).
 * About what holds machines nobody else can be asked, so that without an answer nothing of it is deleted.
 */
import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { clusterType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { createController, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { GUARDED_KINDS, HOLDERS } from '../../rules/protection/decide-deletion.ts';
import type { ResourceName } from '../../rules/protection/references.ts';

/** Name of the configuration. */
export const DELETION_WEBHOOKS = 'coracle-deletion-protection';

interface WebhookConfiguration extends KubeObject {
  webhooks?: readonly unknown[];
}

const TYPE = clusterType<WebhookConfiguration>(
  'admissionregistration.k8s.io/v1',
  'validatingwebhookconfigurations',
  'ValidatingWebhookConfiguration',
);
const WEBHOOKS = `${TYPE.group} : ${TYPE.resource}`;

/** Rights for keeping the configuration. */
export const deletionWebhookControllerRules = policyRules(
  `list watch create : ${WEBHOOKS}`,
  `update : ${WEBHOOKS} : ${DELETION_WEBHOOKS}`,
);

/** Where the webhook is reached. */
export interface WebhookAddress {
  /** https, with the path. */
  readonly url: string;
  /** PEM of the authority of its certificate. */
  readonly ca: string;
}

const encoder = new TextEncoder();

const rule = ({ group, resource }: ResourceName): object => ({
  apiGroups: [group],
  apiVersions: ['*'],
  operations: ['DELETE'],
  resources: [resource],
  scope: '*',
});

/** The two webhooks, as the API server completes them. */
export function deletionWebhooks({ url, ca }: WebhookAddress): unknown[] {
  const holders = new Set(HOLDERS.map(({ group, resource }) => `${group}/${resource}`));
  const isHolder = ({ group, resource }: ResourceName): boolean => holders.has(`${group}/${resource}`);
  const webhook = (name: string, kinds: readonly ResourceName[], failurePolicy: 'Fail' | 'Ignore'): object => ({
    name,
    clientConfig: { url, caBundle: encodeBase64(encoder.encode(ca)) },
    rules: kinds.map(rule),
    failurePolicy,
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    sideEffects: 'None',
    timeoutSeconds: 10,
    admissionReviewVersions: ['v1'],
  });
  return [
    webhook(
      'deletion-validator.coracle.dev',
      GUARDED_KINDS.filter((kind) => !isHolder(kind)),
      'Ignore',
    ),
    webhook('holder-deletion-validator.coracle.dev', HOLDERS, 'Fail'),
  ];
}

/** Makes the controller; nothing happens before `start`. */
export function createDeletionWebhookController(
  { client, informers, clock, log }: ControllerEnvironment,
  address: WebhookAddress,
): Runnable {
  const key = { namespace: '', name: DELETION_WEBHOOKS };
  const informer = informers.of(TYPE, { fieldSelector: `metadata.name=${DELETION_WEBHOOKS}` });
  const webhooks = deletionWebhooks(address);
  const controller = createController({
    name: 'deletion-webhook',
    client,
    clock,
    log,
    sources: [source(informer, () => [key])],
    async reconcile(_, { signal }) {
      const found = informer.get(key);
      if (!found) {
        const { group, version, kind } = TYPE;
        const made = { apiVersion: `${group}/${version}`, kind, metadata: { name: DELETION_WEBHOOKS }, webhooks };
        await client.create(TYPE, made, { signal });
        log.info('webhook for deletions configured', { url: address.url });
      } else if (!isDeleting(found) && !deepEqual(found.webhooks, webhooks)) {
        await client.update(TYPE, { ...(found as WebhookConfiguration), webhooks }, { signal });
        log.info('webhook for deletions configured', { url: address.url });
      }
    },
  });
  return {
    name: controller.name,
    start(signal) {
      // Of an object that is not there no source speaks.
      controller.enqueue(key);
      return controller.start(signal);
    },
  };
}
