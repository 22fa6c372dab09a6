import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;

/** Sends files with Java's own client and its defaults: it offers HTTP/2 with its first request. */
class SendEvent {
    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        for (int i = 1; i < arguments.length; i++) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0]))
                    .header("Content-Type", "application/json")
                    .POST(BodyPublishers.ofFile(Path.of(arguments[i])))
                    .build();
            HttpResponse<String> answer = client.send(request, BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.version());
        }
    }
}
