/** Every active namespace has a ConfigMap `kube-root-ca.crt` with the CA that signed the API server's certificate. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CONFIG_MAPS, NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import type { ConfigMap } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, isNamespaceTerminating, isNotFound, orExpected } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';

export interface RootCaOptions extends ControllerEnvironment {
  /** PEM of the CA certificate (never the key). */
  readonly rootCa: string;
}

export const rootCaRules = policyRules(
  'list watch : core : namespaces configmaps',
  'create : core : configmaps',
  'patch : core : configmaps : kube-root-ca.crt',
);

const NAME = 'kube-root-ca.crt';

/** Makes the controller; its keys are namespaces. A changed or deleted ConfigMap is put back. */
export function createRootCaController(options: RootCaOptions): Controller {
  const { client, informers, rootCa } = options;
  const namespaces = informers.of(NAMESPACES);
  // Only the one of each namespace: a cluster's other ConfigMaps may be many and large.
  const configMaps = informers.of(CONFIG_MAPS, { fieldSelector: `metadata.name=${NAME}` });
  const data = { 'ca.crt': rootCa };
  return createController({
    ...options,
    name: 'root-ca-certificate-publisher-controller',
    concurrency: 4,
    sources: [
      ownKeys(namespaces),
      source(configMaps, ({ metadata }) =>
        metadata.name === NAME ? [{ namespace: '', name: metadata.namespace ?? '' }] : [],
      ),
    ],
    async reconcile(key, { signal }) {
      const namespace = namespaces.get(key);
      if (!namespace || isDeleting(namespace)) return;
      const held = configMaps.get({ namespace: key.name, name: NAME });
      if (held && deepEqual(held.data, data)) return;
      const { binaryData: _stray, ...rest } = held ?? ({} as ConfigMap);
      const made = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: NAME, namespace: key.name }, data };
      const written = held
        ? commit<ConfigMap>(client, CONFIG_MAPS, { before: held, after: { ...rest, data }, signal })
        : client.create(CONFIG_MAPS, made, { signal });
      await orExpected(written, isAlreadyExists, isNamespaceTerminating, isNotFound);
    },
  });
}
