/** Every active namespace has a ServiceAccount `default`: Pods are admitted with it, and tools wait for it. */
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { NAMESPACES, SERVICE_ACCOUNTS } from '@coracle/apimachinery/types/resource-types';
import { isAlreadyExists, isNamespaceTerminating, isNotFound, orExpected } from '@coracle/client/api-failure';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

export const serviceAccountRules = policyRules(
  'list watch : core : namespaces serviceaccounts',
  'create : core : serviceaccounts',
);

const NAME = 'default';

/** Makes the controller; its keys are namespaces. */
export function createServiceAccountController(environment: ControllerEnvironment): Controller {
  const { client, informers } = environment;
  const namespaces = informers.of(NAMESPACES);
  const accounts = informers.of(SERVICE_ACCOUNTS);
  return createController({
    ...environment,
    name: 'serviceaccount-controller',
    concurrency: 4,
    sources: [
      ownKeys(namespaces),
      source(accounts, ({ metadata }) =>
        metadata.name === NAME ? [{ namespace: '', name: metadata.namespace ?? '' }] : [],
      ),
    ],
    async reconcile(key, { signal }) {
      const namespace = namespaces.get(key);
      if (!namespace || namespace.metadata.deletionTimestamp !== undefined) return;
      if (accounts.get({ namespace: key.name, name: NAME })) return;
      // The cache lags, or the namespace has begun to go: both are fine.
      const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace: key.name } };
      const created = client.create(SERVICE_ACCOUNTS, account, { signal });
      await orExpected(created, isAlreadyExists, isNamespaceTerminating, isNotFound);
    },
  });
}
