/** Every active namespace has a ConfigMap `kube-root-ca.crt` with the CA that signed the API server's certificate. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CONFIG_MAPS, NAMESPACES } from '@coracle/apimachinery/types/resource-types';
import type { ConfigMap } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, isNamespaceTerminating, isNotFound } from '@coracle/client/api-failure';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, DONE, ownKeys, source } from '@coracle/client/controller/controller';
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
      if (!namespace || namespace.metadata.deletionTimestamp !== undefined) return DONE;
      const held = configMaps.get({ namespace: key.name, name: NAME });
      try {
        if (held && !deepEqual(held.data, data)) {
          const { binaryData: _stray, ...rest } = held as ConfigMap;
          const after: ConfigMap = { ...rest, data };
          await commit(client, CONFIG_MAPS, { before: held, after, signal });
        } else if (!held) {
          await client.create(
            CONFIG_MAPS,
            { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: NAME, namespace: key.name }, data },
            { signal },
          );
        }
      } catch (error) {
        if (!isAlreadyExists(error) && !isNamespaceTerminating(error) && !isNotFound(error)) throw error;
      }
      return DONE;
    },
  });
}
