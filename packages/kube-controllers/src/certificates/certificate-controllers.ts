/** The room's controllers by the names kube-controller-manager gives them: what `--controllers` chooses from. */
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { approvingRules, createApprovingController } from './approving-controller.ts';
import { cleanerRules, createCleanerController } from './cleaner-controller.ts';
import { createLegacyTokenController, legacyTokenRules, type SignLegacyToken } from './legacy-token-controller.ts';
import { createSigningController, type SignRequest, signingRules } from './signing-controller.ts';

/** What only the process that holds the keys can do. */
export interface KeyHolder {
  readonly sign: SignRequest;
  readonly signToken: SignLegacyToken;
}

export interface CertificateControllerOptions extends ControllerEnvironment {
  readonly rootCa: string;
  /** Absent away from the keys. */
  readonly keys?: KeyHolder;
}

export interface CertificateController {
  readonly name: string;
  /** The rights it needs, and no more. */
  readonly rules: readonly PolicyRule[];
  /** It runs where the keys are and nowhere else. */
  readonly needsKeys: boolean;
  readonly create: (options: CertificateControllerOptions) => Runnable;
}

const keysOf = ({ keys }: CertificateControllerOptions): KeyHolder => {
  if (!keys) throw new Error('this controller runs only in the process that holds the cluster keys');
  return keys;
};

/** All of them, in no particular order. */
export const certificateControllers: readonly CertificateController[] = [
  {
    name: 'certificatesigningrequest-approving-controller',
    rules: approvingRules,
    needsKeys: false,
    create: createApprovingController,
  },
  {
    name: 'certificatesigningrequest-signing-controller',
    rules: signingRules,
    needsKeys: true,
    create: (options) => createSigningController({ ...options, sign: keysOf(options).sign }),
  },
  {
    name: 'certificatesigningrequest-cleaner-controller',
    rules: cleanerRules,
    needsKeys: false,
    create: createCleanerController,
  },
  {
    name: 'serviceaccount-token-controller',
    rules: legacyTokenRules,
    needsKeys: true,
    create: (options) => createLegacyTokenController({ ...options, signToken: keysOf(options).signToken }),
  },
];
