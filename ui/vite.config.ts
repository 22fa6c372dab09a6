import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzip } from "node:zlib";
import { promisify } from "node:util";
import { defineConfig, type Plugin } from "vite";

const TEXT = /\.(js|css|txt)$/;

/** Compress each text file, so that the server need not; it decompresses for old clients. */
function compress(): Plugin {
  return {
    name: "compress",
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

/** Write the licenses of all bundled packages into one file. */
function licenses(): Plugin {
  return {
    name: "licenses",
    apply: "build",
    generateBundle() {
      const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
        packages: Record<string, { version?: string; dev?: boolean; license?: string }>;
      };
      const carried = Object.entries(lock.packages).filter(
        ([path, about]) => path && !about.dev && existsSync(path),
      );
      const texts = carried.map(([path, about]) => {
        const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
        const text = file ? readFileSync(join(path, file), "utf8") : "";
        return `${path.replace("node_modules/", "")} ${about.version}, ${about.license}\n\n${text}`;
      });
      this.emitFile({
        type: "asset",
        fileName: "licenses.txt",
        source: texts.join(`\n\n${"-".repeat(80)}\n\n`),
      });
    },
  };
}

export default defineConfig({
  plugins: [licenses(), compress()],
  build: {
    outDir: "../src/penstock/web/static",
    emptyOutDir: true,
    target: "es2022",
    // The content security policy allows data: addresses only for images.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1700,
  },
  worker: { format: "es" },
  server: { proxy: { "^/(api|docs|openapi.json|metrics|livez|readyz)": "http://127.0.0.1:5000" } },
});
