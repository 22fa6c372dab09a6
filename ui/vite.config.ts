import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzip } from "node:zlib";
import { promisify } from "node:util";
import { defineConfig, type Plugin } from "vite";

const TEXT = /\.(js|css|txt)$/;

/** Packs each file of text, so that the server need not; it unpacks for whoever cannot. */
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    async writeBundle(options, bundle) {
      for (const name of Object.keys(bundle).filter((each) => TEXT.test(each))) {
        const path = join(options.dir ?? "", name);
        await writeFile(`${path}.gz`, await promisify(gzip)(await readFile(path), { level: 9 }));
        await unlink(path);
      }
    },
  };
}

/** Writes the licences of everything that the page carries into one file beside it. */
function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, { version?: string; dev?: boolean; license?: string }> };
      const carried = Object.entries(lock.packages).filter(([path, about]) => path && !about.dev && existsSync(path));
      const texts = carried.map(([path, about]) => {
        const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
        const text = file ? readFileSync(join(path, file), "utf8") : "";
        return `${path.replace("node_modules/", "")} ${about.version}, ${about.license}\n\n${text}`;
      });
      this.emitFile({ type: "asset", fileName: "licences.txt", source: texts.join(`\n\n${"-".repeat(80)}\n\n`) });
    },
  };
}

export default defineConfig({
  plugins: [licences(), packed()],
  build: {
    outDir: "../src/penstock/web/static",
    emptyOutDir: true,
    target: "es2022",
    // The page's policy allows no file in a data: address but pictures.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1700,
  },
  worker: { format: "es" },
  server: { proxy: { "^/(api|docs|openapi.json|metrics|livez|readyz)": "http://127.0.0.1:5000" } },
});
