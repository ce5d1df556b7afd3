/** Keeps the CDIConfig `config`, in which clients look for the upload proxy. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { commit } from '@coracle/client/commit/commit';
import { type Controller, createController, ownKeys } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { CDI_CONFIGS, CDI_GROUP, CDI_VERSION, type CdiConfig } from '../../kinds/kinds.ts';

export interface CdiConfigOptions extends ControllerEnvironment {
  /** Where uploads are taken; none is named without. */
  readonly uploadProxy?: {
    readonly url: string;
    /** PEM of the authority of its certificate. */
    readonly ca: string;
  };
}

const KEY = { namespace: '', name: 'config' };

/** Makes the controller; nothing happens before `start`. */
export function createCdiConfigController({
  client,
  clock,
  log,
  informers,
  uploadProxy,
}: CdiConfigOptions): Controller {
  const configs = informers.of(CDI_CONFIGS);
  const controller = createController({
    name: 'cdi-config',
    client,
    clock,
    log,
    sources: [ownKeys(configs)],
    async reconcile(key, { signal }) {
      if (key.name !== KEY.name) return;
      const config = configs.get(KEY);
      const made: CdiConfig = {
        apiVersion: `${CDI_GROUP}/${CDI_VERSION}`,
        kind: 'CDIConfig',
        metadata: { name: KEY.name },
        spec: {},
      };
      if (!config) {
        await client.create(CDI_CONFIGS, made, { signal });
        return;
      }
      const { uploadProxyURLOverride: override } = config.spec ?? {};
      const status = {
        ...(uploadProxy && { uploadProxyURL: override ?? uploadProxy.url, uploadProxyCA: uploadProxy.ca }),
        filesystemOverhead: { global: '0' },
        preallocation: false,
      };
      if (deepEqual(config.status, status)) return;
      await commit(client, CDI_CONFIGS, { before: config, after: { ...config, status } as CdiConfig, signal });
    },
  });
  controller.enqueue(KEY);
  return controller;
}
